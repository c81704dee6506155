// All or nothing: for every command a wrapper fails statement 1, 2, … n of its transaction in turn.
// After each failure the row, the audit row and the event are all there or none of them.

import { createOutbox } from 'hermod'
import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { consequences, type DocumentCommand } from '../../src/events.ts'
import { type App, buildApp } from '../../src/http/app.ts'
import { useServer } from '../support/server.ts'
import { createDraft, createPublished, example, type Made, personId } from './people.ts'

const server = useServer()

/** The statement of a transaction that fails next, counted from 1; 0 = none. */
let failAt = 0
let sent = 0

class Sabotage extends Error {}

function sabotaged(pool: Pool): Pool {
  const client = (real: object) =>
    new Proxy(real, {
      get: (target, name) => {
        const value = Reflect.get(target, name, target)
        if (name !== 'query') return typeof value === 'function' ? value.bind(target) : value
        return (...args: unknown[]) => {
          const [statement] = args
          const text = typeof statement === 'string' ? statement : (statement as { text: string }).text
          if (text === 'rollback') return value.apply(target, args)
          if (++sent === failAt) return Promise.reject(new Sabotage(`statement ${sent} fails`))
          return value.apply(target, args)
        }
      },
    })
  return new Proxy(pool, {
    get: (target, name) => {
      const value = Reflect.get(target, name, target)
      if (name === 'connect') return async () => client(await target.connect())
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

let fragile: App
let bo = ''
let cy = ''

beforeAll(async () => {
  const pool = sabotaged(server.platform.pool)
  const outbox = createOutbox({ pool })
  fragile = await buildApp({ ...server.platform, pool, outbox })
  await fragile.ready()
  bo = await personId(server, 'bo')
  cy = await personId(server, 'cy')
  // Whoever is signed in for the first time becomes a person; that is not what is counted here.
  for (const name of ['ada', 'bo']) await ask('GET', '/api/v2/drafts', name)
})
afterAll(() => fragile?.close())

async function ask(method: string, url: string, as: string, body?: object, version?: string) {
  return fragile.inject({
    method: method as 'GET',
    url,
    headers: {
      authorization: `Bearer ${await server.token(as)}`,
      ...(version !== undefined && { 'if-match': `"${version}"` }),
      ...(method === 'POST' && { 'idempotency-key': crypto.randomUUID() }),
    },
    ...(body !== undefined && { payload: body }),
  })
}

/** Everything a command may leave behind. */
async function state() {
  const [row] = await server.db.query(`select
    (select coalesce(md5(string_agg(w::text, '|' order by w.id)), '') from hermod.document_whole w) as documents,
    (select count(*)::int from hermod.document_modification_log) as log, (select count(*)::int from outbox.event) as events,
    (select coalesce(string_agg(n::text, '|' order by n.product), '') from hermod.product_number n) as numbers,
    (select count(*)::int from hermod.idempotency) as keys`)
  return row as { documents: string; log: number; events: number; numbers: string; keys: number }
}

interface Attempt {
  readonly method: string
  readonly url: (id: string) => string
  readonly as?: string
  readonly body?: () => object
  readonly make?: () => Promise<Made>
}

const draft = () => createDraft(server, 'ada', { approvers: [bo] })
const published = () => createPublished(server, 'ada', { approvers: [bo, cy] })
const decidedBy = async (as: string) => {
  const made = await published()
  const asking = { as, version: made.version, body: {} }
  return (await server.ask('POST', `/api/v2/approvals/${made.id}`, asking)).json<Made>()
}
const drafts = (id: string) => `/api/v2/drafts/${id}`
const documents = (id: string) => `/api/v2/documents/${id}`
const approvals = (id: string) => `/api/v2/approvals/${id}`
const patch = (url: Attempt['url'], make: Attempt['make'], body: () => object): Attempt => ({
  method: 'PATCH',
  url,
  body,
  ...(make !== undefined && { make }),
})

const attempts: Record<Exclude<DocumentCommand, 'refreshDraft' | 'refreshDocument'>, Attempt> = {
  createDraft: { method: 'POST', url: () => '/api/v2/drafts', body: () => example },
  editDraft: patch(drafts, draft, () => ({ title: 'New' })),
  changeDraftPeople: patch(drafts, draft, () => ({ contributors: [cy] })),
  changeDraftContent: patch(drafts, draft, () => ({ content: 'New' })),
  deleteDraft: { method: 'DELETE', url: drafts, make: draft },
  publish: { method: 'POST', url: (id) => `/api/v2/reviews/${id}`, make: draft },
  createDocument: { method: 'POST', url: () => '/api/v2/documents', body: () => example },
  replaceDocument: {
    method: 'PUT',
    url: documents,
    make: published,
    body: () => ({ ...example, title: 'New', owners: [cy] }),
  },
  editDocument: patch(documents, published, () => ({ title: 'New' })),
  changePeople: patch(
    documents,
    () => decidedBy('bo'),
    () => ({ approvers: [cy] }),
  ),
  changeContent: patch(
    documents,
    () => decidedBy('bo'),
    () => ({ content: 'New' }),
  ),
  changeStatus: patch(
    documents,
    () => decidedBy('bo'),
    () => ({ status: 'Obsolete' }),
  ),
  approve: { method: 'POST', url: approvals, as: 'bo', make: published, body: () => ({}) },
  requestChanges: {
    ...patch(
      approvals,
      () => decidedBy('bo'),
      () => ({ decision: 'changes-requested' }),
    ),
    as: 'bo',
  },
  deleteDocument: { method: 'DELETE', url: documents, make: () => decidedBy('bo') },
}

describe('each statement of each command may fail', () => {
  const table: string[] = []

  it('every command of the table is tried', () => {
    const refreshing = ['refreshDraft', 'refreshDocument']
    const all = Object.keys(consequences).filter((command) => !refreshing.includes(command))
    expect(Object.keys(attempts).sort()).toEqual(all.sort())
  })

  it.each(Object.entries(attempts))('%s', async (command, attempt) => {
    const made = await attempt.make?.()
    const before = await state()
    const go = () => {
      sent = 0
      return ask(
        ...([attempt.method, attempt.url(made?.id ?? ''), attempt.as ?? 'ada'] as const),
        ...([attempt.body?.(), made?.version] as const),
      )
    }
    let statements = 0
    for (failAt = 1; ; failAt++) {
      const answer = await go()
      if (answer.statusCode < 300) break
      expect(answer.statusCode, answer.body).toBe(500)
      expect(answer.body).not.toContain('statement')
      expect(await state(), `after statement ${failAt} failed`).toEqual(before)
      statements = failAt
    }
    failAt = 0
    const after = await state()
    expect(after.documents).not.toBe(before.documents)
    expect({ log: after.log, events: after.events }).toEqual({
      log: before.log + 1,
      events: before.events + 1,
    })
    await expectLinked(command)
    expect(statements).toBeGreaterThanOrEqual(5)
    table.push(`${command} × ${statements}`)
  })

  afterAll(() => console.log(`failed in turn: ${table.join(', ')}`))
})

/** The newest audit row names its event, and the event names the row. */
async function expectLinked(command: string): Promise<void> {
  const [row] = await server.db.query(
    `select l.command, l.modification_type as modification, e.type as event, e.headers ->> 'log' = l.id::text as linked
       from hermod.document_modification_log l join outbox.event e on e.id = l.event_id order by l.id desc limit 1`,
  )
  const { modification, event } = consequences[command as DocumentCommand]
  expect(row).toEqual({ command, modification, event, linked: true })
}
