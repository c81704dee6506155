// One document from its first draft to its end, through HTTP alone, with search, audit trail,
// events and sync state checked after every step.

import { expect, it } from 'vitest'
import { createDraft, type Made, ok, personId } from '../documents/people.ts'
import { useServer } from '../support/server.ts'

const server = useServer()

interface Sync {
  readonly searchable: boolean
  readonly why: string | null
  readonly version: string
  readonly log: string
  readonly indexes: readonly { index: string; wanted: string; current: boolean }[]
  readonly event: { id: string; type: string; log: string; position: string | null } | null
  readonly subscriptions: readonly { subscription: string; state: string }[]
  readonly attempts: readonly { subscription: string; outcome: string }[]
}

interface Entry {
  readonly id: string
  readonly type: string
  readonly version: string
  readonly eventId: string
  readonly person: { displayName: string }
  readonly changes: Record<string, { from: unknown; to: unknown }>
}

const titles = async (index: string, q: string, as = 'ada') => {
  const url = `/api/v2/search?index=${index}&q=${encodeURIComponent(q)}`
  const { hits } = await ok<{ hits: { document: { title: string } }[] }>(server, 'GET', url, { as })
  return hits.map(({ document }) => document.title)
}

/** What the newest change left behind, everywhere. */
async function traces(id: string, as = 'ada') {
  await server.caughtUp()
  const sync = await ok<Sync>(server, 'GET', `/api/v2/documents/${id}/sync`, { as })
  const { items } = await ok<{ items: Entry[] }>(server, 'GET', `/api/v2/documents/${id}/history`, {
    as,
  })
  const [entry] = items
  if (entry === undefined) throw new Error('there is no entry')
  // From the audit row to its event to its attempts, and back.
  expect(sync).toMatchObject({ searchable: true, why: null, log: entry.id, version: entry.version })
  expect(sync.event).toMatchObject({ id: entry.eventId, log: entry.id })
  expect(sync.subscriptions.map(({ state }) => state)).toEqual(sync.subscriptions.map(() => 'delivered'))
  expect(sync.attempts.length).toBeGreaterThan(0)
  return { type: entry.type, by: entry.person.displayName, changes: entry.changes, sync, items }
}

it('draft → edit → publish → approve → rename → delete', async () => {
  await server.work()
  const bo = await personId(server, 'bo')
  const ada = await personId(server, 'ada')

  const draft = await createDraft(server, 'ada', {
    title: 'Zebra ranking',
    content: 'Stripes in order',
    approvers: [bo],
  })
  const { id } = draft
  const created = await traces(id)
  expect(created).toMatchObject({ type: 'created', by: 'ada' })
  expect(created.sync.event?.type).toBe('draft.created')
  expect(created.sync.indexes).toMatchObject([
    { index: 'documents', wanted: 'absent', current: true },
    { index: 'drafts', wanted: 'present', current: true },
  ])
  expect(await titles('drafts', 'stripes')).toEqual(['Zebra ranking'])
  expect(await titles('drafts', 'stripes', 'bo'), 'an approver sees no draft').toEqual([])
  expect(await titles('documents', 'stripes')).toEqual([])

  const edited = await ok(server, 'PATCH', `/api/v2/drafts/${id}`, {
    as: 'ada',
    version: draft.version,
    body: { title: 'Zebra ordering' },
  })
  const afterEdit = await traces(id)
  expect(afterEdit).toMatchObject({
    type: 'updated',
    changes: { title: { from: 'Zebra ranking', to: 'Zebra ordering' } },
  })
  expect(await titles('drafts', 'ordering')).toEqual(['Zebra ordering'])

  const published = await ok(server, 'POST', `/api/v2/reviews/${id}`, {
    as: 'ada',
    version: edited.version,
  })
  expect(published).toMatchObject({ status: 'In-Review', docNumber: 1, docKey: 'Labs-001' })
  const afterPublish = await traces(id)
  expect(afterPublish).toMatchObject({
    type: 'published',
    changes: { status: { from: 'WIP', to: 'In-Review' }, docKey: { from: null, to: 'Labs-001' } },
  })
  expect(afterPublish.sync.event?.type).toBe('document.published')
  const heard = afterPublish.sync.subscriptions.map(({ subscription }) => subscription)
  expect(heard, 'one event, both indexes').toEqual(expect.arrayContaining(['search-documents', 'search-drafts']))
  expect(await titles('drafts', 'ordering')).toEqual([])
  expect(await titles('documents', 'ordering', 'bo')).toEqual(['Zebra ordering'])

  const approved = await ok(server, 'POST', `/api/v2/approvals/${id}`, {
    as: 'bo',
    version: published.version,
    body: { comment: 'Well ordered' },
  })
  expect(approved).toMatchObject({ status: 'Approved', approvals: [{ personId: bo }] })
  expect(await traces(id, 'bo')).toMatchObject({
    type: 'approved',
    by: 'bo',
    changes: { status: { from: 'In-Review', to: 'Approved' } },
  })
  const approvedHits = await ok<{ total: number }>(server, 'GET', '/api/v2/search?filter=status:Approved', {
    as: 'ada',
  })
  expect(approvedHits.total).toBe(1)

  const renamed = await ok<Made>(server, 'PATCH', `/api/v2/documents/${id}`, {
    as: 'ada',
    version: approved.version,
    body: { title: 'Giraffe ordering' },
  })
  expect(renamed, 'another title is reviewed again').toMatchObject({ status: 'In-Review', title: 'Giraffe ordering' })
  expect(await traces(id)).toMatchObject({
    type: 'status_changed',
    changes: { title: { to: 'Giraffe ordering' }, status: { from: 'Approved', to: 'In-Review' } },
  })
  expect(await titles('documents', 'giraffe')).toEqual(['Giraffe ordering'])
  expect(await titles('documents', 'zebra')).toEqual([])

  await ok(server, 'DELETE', `/api/v2/documents/${id}`, { as: 'ada', version: renamed.version }, 204)
  const gone = await traces(id)
  expect(gone.type).toBe('deleted')
  expect(gone.sync.event?.type).toBe('document.deleted')
  expect(await titles('documents', 'giraffe')).toEqual([])
  expect((await server.ask('GET', `/api/v2/documents/${id}`, { as: 'ada' })).statusCode).toBe(404)

  expect(gone.items.map(({ type, version }) => `${version} ${type}`)).toEqual([
    ...['6 deleted', '5 status_changed', '4 approved', '3 published', '2 updated', '1 created'],
  ])
  // Who was no insider of the draft sees its life from publishing on.
  const { items } = await ok<{ items: Entry[] }>(server, 'GET', `/api/v2/documents/${id}/history`, {
    as: 'bo',
  })
  expect(items.map(({ version }) => version)).toEqual(['6', '5', '4', '3'])
  const audit = await ok<{ items: (Entry & { identity: string })[] }>(
    server,
    'GET',
    `/api/v2/audit?document=${id}&person=${ada}`,
    { as: 'cy', role: 'operator' },
  )
  expect(audit.items).toHaveLength(5)
  expect(audit.items[0]?.identity).toContain('ada')
})
