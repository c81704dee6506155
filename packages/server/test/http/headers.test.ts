// Security headers on every kind of answer, and request ids that lead back to the log.
import { describe, expect, it } from 'vitest'
import { useServer } from '../support/server.ts'

const server = useServer()
const policy =
  "default-src 'none';script-src 'self';style-src 'self';img-src 'self' data:;font-src 'self';" +
  "connect-src 'self';base-uri 'none';form-action 'self';frame-ancestors 'none'"

describe('every answer', () => {
  it.each([
    ['a page', 'GET', '/'],
    ['the API reference', 'GET', '/docs'],
    ['a file of it', 'GET', '/docs/static/swagger-ui.css'],
    ['the problems', 'GET', '/docs/problems'],
    ['the document', 'GET', '/openapi.json'],
    ['an answer', 'GET', '/healthz'],
    ['a refusal', 'GET', '/api/v2/tokens'],
    ['an unknown page', 'GET', '/nowhere'],
    ['a wrong method', 'DELETE', '/healthz'],
  ])('%s carries the whole set', async (_what, method, url) => {
    const { headers } = await server.ask(method, url)
    expect(headers).toMatchObject({
      'content-security-policy': policy,
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'strict-transport-security': expect.stringContaining('max-age='),
      'x-request-id': expect.stringMatching(/^[\w.-]{1,64}$/),
    })
    expect(headers['x-powered-by']).toBeUndefined()
    expect(headers.server).toBeUndefined()
    expect(headers['access-control-allow-origin']).toBeUndefined()
  })

  it('nothing of the API is kept by caches', async () => {
    const answer = await server.ask('GET', '/api/v2/tokens', { as: 'ada' })
    expect(answer.headers['cache-control']).toBe('no-store')
  })
})

describe('the request id', () => {
  it('is the caller’s when it is harmless', async () => {
    const headers = { 'x-request-id': 'trace-7.a_b' }
    const answer = await server.ask('GET', '/api/v2/tokens', { headers })
    expect(answer.headers['x-request-id']).toBe('trace-7.a_b')
    expect(answer.json().requestId).toBe('trace-7.a_b')
  })

  it.each(['a b', '<script>', 'a'.repeat(65), 'ü'])('is ours instead of %j', async (given) => {
    const answer = await server.ask('GET', '/healthz', { headers: { 'x-request-id': given } })
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
  })
})

describe('health', () => {
  it('says that it lives and that it is ready', async () => {
    for (const url of ['/healthz', '/readyz']) {
      const answer = await server.ask('GET', url)
      expect([answer.statusCode, answer.json()]).toEqual([200, { status: 'ok' }])
    }
  })

  it('is not ready before its migrations, the engine’s included', async () => {
    for (const schema of ['hermod', 'outbox']) {
      await server.db.query(`alter table ${schema}.migration rename to gone`)
      const answer = await server.ask('GET', '/readyz')
      expect([answer.statusCode, answer.json().code]).toEqual([503, 'HMD_UNAVAILABLE'])
      expect(answer.headers['retry-after']).toBe('5')
      await server.db.query(`alter table ${schema}.gone rename to migration`)
    }
    expect((await server.ask('GET', '/readyz')).statusCode).toBe(200)
  })
})
