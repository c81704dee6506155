// Is it searchable yet, and if not, why: the answer while nobody works, while a subscription is
// paused, while the destination is away, and for documents too large for an event.

import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { refreshDocuments } from '../../src/people/references/refresh.ts'
import { transaction } from '../../src/platform.ts'
import { useServer } from '../support/server.ts'
import { createDraft, createPublished, ok, personId } from './people.ts'

const server = useServer()

interface Sync {
  readonly searchable: boolean
  readonly why: string | null
  readonly indexes: readonly { index: string; current: boolean | null; indexedVersion: string }[]
  readonly subscriptions: readonly { subscription: string; state: string; health: string }[]
  readonly event: { bytes: number; position: string | null }
}

const syncOf = (id: string, query = '') =>
  ok<Sync>(server, 'GET', `/api/v2/documents/${id}/sync${query}`, { as: 'ada' })

const by = { actor: 'test', reason: 'a look at it' }
afterEach(async () => {
  await server.platform.outbox.resume('search-documents', by).catch(() => undefined)
})

it('says that no worker runs, then that it is there', async () => {
  const { id } = await createPublished(server, 'ada', { title: 'Waiting' })
  const before = await syncOf(id)
  expect(before).toMatchObject({ searchable: false, event: { position: null } })
  expect(before.why).toMatch(/No worker/)
  await server.work()
  await server.caughtUp()
  expect(await syncOf(id)).toMatchObject({ searchable: true, why: null })
})

it('says who paused the subscription and why, and which version is found meanwhile', async () => {
  await server.work()
  const { id } = await createPublished(server, 'ada', { title: 'First' })
  await server.caughtUp()
  await server.platform.outbox.pause('search-documents', by)
  const url = `/api/v2/documents/${id}`
  await ok(server, 'PATCH', url, { as: 'ada', version: 1, body: { title: 'Second' } })
  const held = await eventually(async () => {
    const sync = await syncOf(id)
    return sync.event.position !== null && sync
  })
  expect(held).toMatchObject({ searchable: false, why: expect.stringContaining('a look at it') })
  expect(held.indexes[0]).toMatchObject({ index: 'documents', current: false, indexedVersion: '1' })
  const search = held.subscriptions.find((one) => one.subscription === 'search-documents')
  expect(search).toMatchObject({ state: 'pending', health: 'paused' })
  // The version before it is where it belongs.
  const { items } = await ok<{ items: { id: string }[] }>(server, 'GET', `${url}/history`, {
    as: 'ada',
  })
  expect(await syncOf(id, `?log=${items[1]?.id}`)).toMatchObject({ searchable: true })
  await server.platform.outbox.resume('search-documents', by)
  await server.caughtUp()
  expect(await syncOf(id)).toMatchObject({ searchable: true })
})

it('answers also while the search engine does not', async () => {
  const { id } = await createPublished(server, 'ada')
  const { search } = server.platform
  const real = search.get.bind(search)
  search.get = async () => {
    throw new Error('connection refused')
  }
  try {
    const sync = await syncOf(id)
    expect(sync).toMatchObject({ searchable: false, indexes: [{ current: null }, {}] })
    expect(sync.why).toBe('The search engine does not answer.')
    const url = `/api/v2/documents/${id}/sync`
    const operator = await ok<Sync>(server, 'GET', url, { as: 'olga', role: 'operator' })
    expect(operator.why).toContain('connection refused')
  } finally {
    search.get = real
  }
})

describe('large documents', () => {
  it('of a megabyte are saved, told by reference, and found', async () => {
    await server.work()
    const words = Array.from({ length: 100_000 }, (_, n) => `word${n % 5_000}`).join(' ')
    const content = `Needlework first. ${words}`.padEnd(1_048_576, ' and more')
    const draft = await createDraft(server, 'ada', { title: 'Large', content })
    await ok(server, 'POST', `/api/v2/reviews/${draft.id}`, { as: 'ada', version: 1 })
    await server.caughtUp()
    const sync = await syncOf(draft.id)
    expect(sync).toMatchObject({ searchable: true, event: { bytes: 4 } })
    const { hits } = await ok<{ hits: { id: string; document: object }[] }>(
      ...([server, 'GET', '/api/v2/search?q=needlework', { as: 'bo' }] as const),
    )
    expect(hits.map(({ id }) => id)).toEqual([draft.id])
    expect(hits[0]?.document).not.toHaveProperty('content')
    const whole = await ok<{ content: string }>(server, 'GET', `/api/v2/documents/${draft.id}`, {
      as: 'ada',
    })
    expect(whole.content).toBe(content)
    // The draft is out of its index although its event came without a payload.
    expect(await server.platform.search.get('drafts', draft.id)).toBeUndefined()
  })

  it('beyond the body limit are refused by size', async () => {
    const answer = await server.ask('POST', '/api/v2/drafts', {
      as: 'ada',
      body: { title: 'Huge', content: 'x'.repeat(5_000_000) },
    })
    expect(answer.json()).toMatchObject({ status: 413, code: 'HMD_BODY_TOO_LARGE' })
  })
})

it('people who changed outside of a document are found as they are today', async () => {
  await server.work()
  const zoe = await personId(server, 'zoe')
  const { id } = await createPublished(server, 'ada', { owners: [zoe] })
  const draft = await createDraft(server, 'ada', { contributors: [zoe] })
  await server.caughtUp()
  const actor = {
    personId: null,
    identity: 'system',
    role: 'admin',
    permissions: new Set(),
    endpoint: 'test',
    userAgent: null,
    ip: null,
    requestId: 'test',
  } as const
  const told = await transaction(server.platform, async (tx) => {
    await tx.query('update hermod.person set display_name = $1 where id = $2', ['Zoë Novak', zoe])
    return refreshDocuments(server.platform, tx, actor as never, [zoe])
  })
  expect(told).toBe(2)
  await server.caughtUp()
  const stored = await server.platform.search.get('documents', id)
  expect(stored?.document).toMatchObject({ ownerNames: ['Zoë Novak'], version: '1' })
  expect(await server.platform.search.get('drafts', draft.id)).toBeDefined()
  expect(await syncOf(id)).toMatchObject({ searchable: true })
})
