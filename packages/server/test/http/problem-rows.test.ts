// What the API answers to bad requests, row by row of the table: one status, one code, one shape.
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildApp } from '../../src/http/app.ts'
import { useServer } from '../support/server.ts'

const server = useServer()
const draft = { title: 'Plan', docType: 'RFC', product: 'Apollo' }

/** RFC 9457 with a code, a request id and no stack, or the test fails. */
function expectProblem(
  answer: {
    statusCode: number
    headers: Record<string, unknown>
    json(): Record<string, unknown>
    body: string
  },
  status: number,
  code: string,
) {
  expect([answer.statusCode, answer.json().code]).toEqual([status, code])
  expect(answer.headers['content-type']).toMatch(/^application\/problem\+json\b/)
  expect(answer.json()).toMatchObject({
    status,
    type: `/docs/problems#${code.toLowerCase()}`,
    title: expect.any(String),
    detail: expect.any(String),
    instance: expect.any(String),
    requestId: expect.any(String),
  })
  expect(answer.body).not.toMatch(/\bat .*:\d+:\d+|node_modules|\.ts\b/)
}

async function newDraft(as = 'ada'): Promise<{ id: string; version: string }> {
  const answer = await server.ask('POST', '/api/v2/drafts', { as, body: draft })
  expect(answer.statusCode).toBe(201)
  return { id: answer.json().id, version: String(answer.headers.etag).replaceAll('"', '') }
}

describe('400', () => {
  it('broken JSON', async () => {
    const headers = { 'content-type': 'application/json' }
    const answer = await server.ask('POST', '/api/v2/drafts', { as: 'ada', body: '{', headers })
    expectProblem(answer, 400, 'HMD_JSON_INVALID')
  })

  it('a wrong type, an unknown field and a missing one, all at once', async () => {
    const body = { title: 7, docType: 'RFC', colour: 'red' }
    const answer = await server.ask('POST', '/api/v2/drafts', { as: 'ada', body })
    expectProblem(answer, 400, 'HMD_REQUEST_INVALID')
    const pointers = answer.json().errors.map(({ pointer }: { pointer: string }) => pointer)
    expect(pointers.sort()).toEqual(['/colour', '/product', '/title'])
  })

  it.each(['0', '1000000', '-1', '1.5', 'ten', ''])('a page limit of %j', async (limit) => {
    const answer = await server.ask('GET', `/api/v2/documents?limit=${limit}`, { as: 'ada' })
    expectProblem(answer, 400, 'HMD_REQUEST_INVALID')
    expect(answer.json().errors[0].pointer).toBe('?limit')
  })

  it.each(['x', 'a.b', 'WyIxIl0.AAAAAAAAAAAAAAAAAAAAAA'])('the forged cursor %s', async (cursor) => {
    const answer = await server.ask('GET', `/api/v2/documents?cursor=${cursor}`, { as: 'ada' })
    expectProblem(answer, 400, 'HMD_CURSOR_INVALID')
  })

  it('a cursor of another list', async () => {
    for (const _ of [1, 2]) await newDraft()
    const first = await server.ask('GET', '/api/v2/drafts?limit=1', { as: 'ada' })
    const cursor = encodeURIComponent(first.json().nextCursor)
    const answer = await server.ask('GET', `/api/v2/tokens?cursor=${cursor}`, { as: 'ada' })
    expectProblem(answer, 400, 'HMD_CURSOR_INVALID')
  })
})

describe('401, 403, 404', () => {
  it('no token', async () => {
    const answer = await server.ask('GET', '/api/v2/documents')
    expectProblem(answer, 401, 'HMD_UNAUTHENTICATED')
    expect(answer.headers['www-authenticate']).toMatch(/^Bearer/)
  })

  it('a bad token', async () => {
    const headers = { authorization: 'Bearer nonsense' }
    expectProblem(await server.ask('GET', '/api/v2/documents', { headers }), 401, 'HMD_UNAUTHENTICATED')
  })

  it('a role that is missing', async () => {
    const answer = await server.ask('GET', '/api/v2/admin/tokens', { as: 'ada' })
    expectProblem(answer, 403, 'HMD_FORBIDDEN')
  })

  it('a foreign object, exactly as one that does not exist', async () => {
    const { id } = await newDraft()
    const foreign = await server.ask('GET', `/api/v2/drafts/${id}`, { as: 'mallory' })
    const nowhere = await server.ask('GET', `/api/v2/drafts/${randomUUID()}`, { as: 'mallory' })
    expectProblem(foreign, 404, 'HMD_NOT_FOUND')
    const told = ({ instance: _, requestId: __, ...rest }: Record<string, unknown>) => rest
    expect(told(foreign.json())).toEqual(told(nowhere.json()))
  })

  it('an unknown route', async () => {
    expectProblem(await server.ask('GET', '/api/v2/nothing'), 404, 'HMD_NOT_FOUND')
  })
})

describe('405, 413, 415', () => {
  it('a wrong method, with the ones that are known', async () => {
    const answer = await server.ask('PUT', '/api/v2/tokens', { as: 'ada' })
    expectProblem(answer, 405, 'HMD_METHOD_NOT_ALLOWED')
    expect(answer.headers.allow).toBe('GET, HEAD, POST')
  })

  it('1 MB + 1', async () => {
    const body = { name: 'a'.repeat(1_048_576), scopes: ['search:read'] }
    const answer = await server.ask('POST', '/api/v2/tokens', { as: 'ada', body })
    expectProblem(answer, 413, 'HMD_BODY_TOO_LARGE')
  })

  it('another media type', async () => {
    const headers = { 'content-type': 'text/plain' }
    const answer = await server.ask('POST', '/api/v2/drafts', { as: 'ada', body: 'Plan', headers })
    expectProblem(answer, 415, 'HMD_MEDIA_TYPE')
  })
})

describe('409, 412, 428', () => {
  it('a stale If-Match, with the current version', async () => {
    const { id, version } = await newDraft()
    const change = (title: string) =>
      server.ask('PATCH', `/api/v2/drafts/${id}`, { as: 'ada', version, body: { title } })
    const changed = await change('Plan B')
    expect(changed.statusCode).toBe(200)
    const answer = await change('Plan C')
    expectProblem(answer, 412, 'HMD_VERSION_STALE')
    expect(answer.headers.etag).toBe(changed.headers.etag)
    expect(answer.json().currentVersion).toBe(String(changed.headers.etag).replaceAll('"', ''))
  })

  it('no If-Match', async () => {
    const { id } = await newDraft()
    const asking = { as: 'ada', body: { title: 'Plan B' } }
    const answer = await server.ask('PATCH', `/api/v2/drafts/${id}`, asking)
    expectProblem(answer, 428, 'HMD_VERSION_NEEDED')
  })

  it('an illegal transition, with the allowed ones', async () => {
    const made = await server.ask('POST', '/api/v2/documents', { as: 'ada', body: draft })
    expect(made.statusCode).toBe(201)
    const version = String(made.headers.etag).replaceAll('"', '')
    const url = `/api/v2/documents/${made.json().id}`
    const wip = await server.ask('PATCH', url, { as: 'ada', version, body: { status: 'WIP' } })
    expectProblem(wip, 409, 'HMD_TRANSITION_ILLEGAL')
    expect(wip.json().allowed).toEqual(expect.any(Array))
  })

  it('the same key while the first request runs', async () => {
    const { pool } = server.platform
    const client = await pool.connect()
    try {
      const person = await server.db.query<{ id: string }>(
        `select person_id as id from hermod.person_identity where value = 'sub-ada'`,
      )
      await client.query('begin')
      await client.query('select pg_advisory_xact_lock(hashtextextended($1, 7))', [`person:${person[0]?.id}\u0001busy`])
      const headers = { 'idempotency-key': '"busy"' }
      const answer = await server.ask('POST', '/api/v2/drafts', { as: 'ada', body: draft, headers })
      expectProblem(answer, 409, 'HMD_KEY_IN_USE')
      expect(answer.headers['retry-after']).toBe('1')
    } finally {
      await client.query('rollback')
      client.release()
    }
  })
})

describe('422, 503', () => {
  it('a key that was used for another body', async () => {
    const headers = { 'idempotency-key': 'once' }
    const ask = (title: string) =>
      server.ask('POST', '/api/v2/drafts', { as: 'ada', body: { ...draft, title }, headers })
    const first = await ask('One')
    expect(first.statusCode).toBe(201)
    const again = await ask('One')
    expect(again.json()).toEqual(first.json())
    expect(again.headers['idempotent-replayed']).toBe('true')
    expectProblem(await ask('Two'), 422, 'HMD_KEY_REUSED')
  })

  describe('a database that is away', () => {
    const closed = new pg.Pool({ host: '127.0.0.1', port: 9, user: 'x', database: 'x' })
    let app: Awaited<ReturnType<typeof buildApp>>
    beforeAll(async () => {
      app = await buildApp({ ...server.platform, pool: closed })
    })
    afterAll(async () => {
      await app.close()
      await closed.end()
    })

    it('is 503 with Retry-After, and says nothing about where it is', async () => {
      const authorization = `Bearer ${await server.token('ada')}`
      const url = '/api/v2/documents'
      const answer = await app.inject({ method: 'GET', url, headers: { authorization } })
      expectProblem(answer, 503, 'HMD_UNAVAILABLE')
      expect(answer.headers['retry-after']).toBe('5')
      expect(answer.body).not.toContain('127.0.0.1')
    })

    it('the process is alive, and not ready', async () => {
      expect((await app.inject('/healthz')).statusCode).toBe(200)
      const answer = await app.inject('/readyz')
      expectProblem(answer, 503, 'HMD_UNAVAILABLE')
      expect(answer.body).not.toContain('127.0.0.1')
    })
  })
})
