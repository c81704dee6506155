// What is not yours to see is not told by a detour either: addresses by their beginnings, ids of drafts by conflicts, hosts and workers
// by the state of a document.

import { beforeAll, describe, expect, it } from 'vitest'
import { createDraft, createPublished, ok } from '../documents/people.ts'
import { type Asking, useServer } from '../support/server.ts'

const server = useServer()

beforeAll(async () => {
  const hidden = { sub: 'sub-hidden', email: 'h.secret@example.org', email_verified: true, name: 'Nora' }
  const headers = { authorization: `Bearer ${await server.issuer.token(hidden)}` }
  await server.ask('GET', '/api/v2/me', { headers })
})

describe('e-mail addresses of others', () => {
  const find = async (q: string, asking: Asking) => {
    const url = `/api/v2/people?q=${encodeURIComponent(q)}`
    const { items } = await ok<{ items: { displayName: string }[] }>(server, 'GET', url, asking)
    return items.map(({ displayName }) => displayName)
  }

  it('are found as a whole, never by a beginning', async () => {
    const stranger = { as: 'bo' }
    for (const q of ['h', 'h.', 'h.s', 'h.secret', 'h.secret@', 'h.secret@example.or']) {
      expect(await find(q, stranger), q).toEqual([])
    }
    expect(await find('H.Secret@example.org', stranger)).toEqual(['Nora'])
    expect(await find('h_secret@example.org', stranger)).toEqual([])
    expect(await find('nor', stranger)).toEqual(['Nora'])
  })

  it('are found by a beginning by those who see them: admins, and oneself', async () => {
    expect(await find('h.sec', { as: 'root', role: 'admin' })).toEqual(['Nora'])
    await ok(server, 'GET', '/api/v2/me', { as: 'zed' })
    const token = await server.issuer.token({ sub: 'sub-hidden', email: 'h.secret@example.org', email_verified: true })
    expect(await find('h.sec', { headers: { authorization: `Bearer ${token}` } })).toEqual(['Nora'])
  })

  it('do not become the name of somebody whose token has none', async () => {
    const claims = { sub: 'sub-nameless', email: 'nameless@example.org', email_verified: true }
    const headers = { authorization: `Bearer ${await server.issuer.token(claims)}` }
    const me = await server.ask('GET', '/api/v2/me', { headers })
    expect(me.json().displayName).toBe('nameless')
  })
})

describe('the id of a draft of others', () => {
  it('is named neither by a conflict nor by an import', async () => {
    const file = (id: string) => ({ workspaceProvider: 'google', providerFileId: id })
    const draft = await createDraft(server, 'ada', file('f-draft'))
    const document = await createPublished(server, 'ada', file('f-document'))
    const body = { title: 'T', docType: 'RFC', product: 'P', ...file('f-draft') }
    const conflict = await server.ask('POST', '/api/v2/documents', { as: 'bo', body })
    expect(conflict.statusCode).toBe(409)
    expect(conflict.body).not.toContain(draft.id)
    const rows = ['f-draft', 'f-document'].map((id) => `${JSON.stringify({ ...body, ...file(id) })}\n`)
    for (const query of ['?mode=all', '?mode=best-effort', '?dryRun=true']) {
      const answer = await server.ask('POST', `/api/v2/imports${query}`, {
        as: 'olga',
        role: 'operator',
        body: rows.join(''),
        headers: { 'content-type': 'application/x-ndjson', 'idempotency-key': query },
      })
      expect(answer.body, query).toContain('belongs to another document already')
      expect(answer.body, query).not.toContain(draft.id)
      // What everybody sees may be named.
      expect(answer.body, query).toContain(document.id)
    }
  })
})

describe('how a document travels', () => {
  const secret = /10\.0\.0\.7|connect ECONN|worker-of-host-9/

  it('is told without hosts, driver messages and workers, except to operators', async () => {
    const { id } = await createPublished(server, 'ada')
    const { platform } = server
    const real = { get: platform.search.get, event: platform.outbox.event, stats: platform.outbox.stats }
    const error = 'connect ECONNREFUSED 10.0.0.7:9200'
    const failed = { worker: 'worker-of-host-9', outcome: 'unavailable', code: 'ECONNREFUSED', error }
    platform.search.get = () => Promise.reject(new Error(error))
    Object.assign(platform.outbox, {
      event: async (eventId: bigint) => {
        const story = await real.event.call(platform.outbox, eventId)
        const state = { subscription: 'search-documents', state: 'retrying', attempts: 3, nextAttemptAt: new Date() }
        return {
          ...story,
          states: [{ ...state, code: 'ECONNREFUSED', error, blockedBy: null, reason: null }],
          attempts: [{ subscription: 'search-documents', startedAt: new Date(), durationMs: 1, ...failed }],
        }
      },
      stats: async () => ({
        ...(await real.stats.call(platform.outbox)),
        workers: 1,
        subscriptions: [
          {
            ...{ name: 'search-documents', workers: 1, dead: 0, unknown: 0, pending: 1, retrying: 1 },
            ...{ oldestPendingAgeMs: 5, health: { word: 'unavailable', since: null, why: error } },
          },
        ],
      }),
    })
    try {
      const sync = (as: string, role: 'editor' | 'reader' | 'operator') =>
        server.ask('GET', `/api/v2/documents/${id}/sync`, { as, role })
      for (const role of ['reader', 'editor'] as const) {
        const answer = await sync('bo', role)
        expect(answer.statusCode, answer.body).toBe(200)
        expect(answer.body).not.toMatch(secret)
        expect(answer.json()).toMatchObject({ searchable: false, why: 'The search engine does not answer.' })
        expect(answer.json().subscriptions[0]).toMatchObject({ state: 'retrying', attempts: 3, error: null })
        expect(answer.json().attempts[0]).toMatchObject({ outcome: 'unavailable', worker: null, error: null })
        const health = await server.ask('GET', '/api/v2/health', { as: 'bo', role })
        expect(health.statusCode).toBe(200)
        expect(health.body).not.toMatch(secret)
        expect(health.json().says).toContain('search-documents is unavailable')
      }
      expect((await sync('olga', 'operator')).body).toMatch(/10\.0\.0\.7.*worker-of-host-9/)
      const health = await server.ask('GET', '/api/v2/health', { as: 'olga', role: 'operator' })
      expect(health.body).toContain('10.0.0.7')
    } finally {
      Object.assign(platform.search, { get: real.get })
      Object.assign(platform.outbox, { event: real.event, stats: real.stats })
    }
  })
})
