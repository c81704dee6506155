// Too much, too deep, too slow, too often: each refused with its own problem, and the process lives.
import { once } from 'node:events'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { buildApp } from '../../src/http/app.ts'
import { useServer } from '../support/server.ts'

const limits = { bodyBytes: 1_048_576, documentBytes: 4_194_304, perMinute: 40 }
const server = useServer({ limits }, { bodyMs: 150 })
const tokens = '/api/v2/tokens'
const json = { 'content-type': 'application/json' }
let port = 0
/** Each test asks as somebody new, so that none is held up by another's requests. */
let people = 0
const somebody = () => `person-${++people}`

beforeAll(async () => {
  await server.app.listen({ host: '127.0.0.1', port: 0 })
  port = (server.app.server.address() as { port: number }).port
})

const post = (payload: string | Buffer, headers: Record<string, string> = json) =>
  server.token(somebody()).then((token) =>
    server.app.inject({
      method: 'POST',
      url: tokens,
      payload,
      headers: { ...headers, authorization: `Bearer ${token}` },
    }),
  )

/** What the server writes to a raw connection until it hangs up. */
async function raw(...pieces: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  socket.on('error', () => {})
  for (const piece of pieces) socket.write(piece)
  await once(socket, 'close')
  return answer
}

describe('bodies', () => {
  it.each([
    ['broken JSON', '{"name":', 400, 'HMD_JSON_INVALID'],
    ['cut text', '{"name":"a', 400, 'HMD_JSON_INVALID'],
    ['1,000 levels', '['.repeat(1_000) + ']'.repeat(1_000), 400, 'HMD_JSON_INVALID'],
    ['500,000 levels', '['.repeat(500_000) + ']'.repeat(500_000), 400, 'HMD_JSON_INVALID'],
    ['__proto__', '{"name":"a","__proto__":{"admin":true}}', 400, 'HMD_JSON_INVALID'],
    ['__proto__ in escapes', '{"\\u005f_proto__":{"admin":true}}', 400, 'HMD_JSON_INVALID'],
    ['constructor.prototype', '{"constructor":{"prototype":{"a":1}}}', 400, 'HMD_JSON_INVALID'],
    ['nothing at all', '', 400, 'HMD_REQUEST_INVALID'],
    ['1 MB + 1', `"${'a'.repeat(1_048_575)}"`, 413, 'HMD_BODY_TOO_LARGE'],
  ])('%s', async (_what, payload, status, code) => {
    const answer = await post(payload)
    expect([answer.statusCode, answer.json().code]).toEqual([status, code])
  })

  it('1 MB is read', async () => {
    const answer = await post(`"${'a'.repeat(1_048_574)}"`)
    expect(answer.json().code).toBe('HMD_REQUEST_INVALID')
  })

  it('19,000 unknown fields are answered at once and briefly', async () => {
    const many = Object.fromEntries(Array.from({ length: 19_000 }, (_, i) => [`f${i}`, 0]))
    const started = performance.now()
    const answer = await post(JSON.stringify(many))
    expect(answer.statusCode).toBe(400)
    expect(answer.json().errors).toHaveLength(50)
    expect(answer.json().detail).toMatch(/and \d+ more$/)
    expect(answer.body.length).toBeLessThan(20_000)
    expect(performance.now() - started).toBeLessThan(2_000)
    const more = await post(`[${'0,'.repeat(20_000)}0]`)
    expect(more.json().detail).toContain('more than 20000 values')
  })

  it('20,000 wrong scopes are answered at once: no check costs the square of their number', async () => {
    const scopes = Array.from({ length: 20_000 }, (_, i) => `scope-${i}`)
    const started = performance.now()
    expect((await post(JSON.stringify({ name: 'a', scopes }))).statusCode).toBe(400)
    expect(performance.now() - started).toBeLessThan(1_000)
  })

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'application/xml', 'text/json'])(
    '%s is 415',
    async (type) => {
      const answer = await post('name=a', { 'content-type': type })
      expect([answer.statusCode, answer.json().code]).toEqual([415, 'HMD_MEDIA_TYPE'])
    },
  )

  it('a compressed body is not inflated', async () => {
    const bomb = gzipSync(Buffer.alloc(10_000_000, 'a'))
    const answer = await post(bomb, { ...json, 'content-encoding': 'gzip' })
    expect([400, 415]).toContain(answer.statusCode)
  })

  it('one that arrives a byte at a time is answered with 408 and hung up on', async () => {
    const token = await server.token(somebody())
    const answer = await raw(
      `POST ${tokens} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n` +
        'content-type: application/json\r\ncontent-length: 100\r\n\r\n{',
    )
    expect(answer).toMatch(/^HTTP\/1.1 408 /)
    expect(answer).toContain('HMD_REQUEST_SLOW')
    expect(answer.toLowerCase()).toContain('connection: close')
  })
})

describe('requests that are none', () => {
  it.each([
    ['garbage', 'hello\r\n\r\n', 400, 'HMD_REQUEST_INVALID'],
    ['headers of 20 kB', `GET / HTTP/1.1\r\nhost: x\r\na: ${'b'.repeat(20_000)}\r\n\r\n`, 431, 'HMD_HEADERS_TOO_LARGE'],
    [
      'a token of 1 MB',
      `GET ${tokens} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${'a'.repeat(1_048_576)}\r\n\r\n`,
      431,
      'HMD_HEADERS_TOO_LARGE',
    ],
    [
      'two lengths',
      `POST ${tokens} HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}`,
      400,
      'HMD_REQUEST_INVALID',
    ],
    [
      'a length and chunks',
      `POST ${tokens} HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      'HMD_REQUEST_INVALID',
    ],
  ])('%s', async (_what, text, status, code) => {
    const answer = await raw(text)
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    const problem = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))
    expect(problem).toMatchObject({ code, status, requestId: expect.any(String) })
  })

  it.each(['/api/v2/documents/%', '/%E0%A4%A', '/api/v2/tokens/%c0%af'])('%s is 400', async (url) => {
    const answer = await server.app.inject({ method: 'GET', url })
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json\b/)
    expect(answer.statusCode).toBe(400)
  })
})

describe('too many', () => {
  it('the 41st request of a minute is 429, of this person alone', async () => {
    const name = somebody()
    const authorization = `Bearer ${await server.token(name)}`
    const ask = () => server.app.inject({ method: 'GET', url: tokens, headers: { authorization } })
    const first = await ask()
    expect(first.headers).toMatchObject({ 'ratelimit-limit': '40', 'ratelimit-remaining': '39' })
    for (let i = 2; i <= 40; i++) expect((await ask()).statusCode).toBe(200)
    const refused = await ask()
    expect([refused.statusCode, refused.json().code]).toEqual([429, 'HMD_RATE_LIMITED'])
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect(refused.headers['content-type']).toMatch(/^application\/problem\+json\b/)
    expect((await server.ask('GET', tokens, { as: name })).statusCode).toBe(429)
    expect((await server.ask('GET', tokens, { as: somebody() })).statusCode).toBe(200)
  })

  it('a refused permission counts too', async () => {
    const name = somebody()
    const statuses = []
    for (let i = 0; i < 41; i++) {
      statuses.push((await server.ask('GET', '/api/v2/admin/tokens', { as: name })).statusCode)
    }
    expect(statuses).toEqual([...Array(40).fill(403), 429])
  })

  it('guessing tokens is answered with 429, and a good token still passes', async () => {
    const headers = { authorization: 'Bearer a.b.c' }
    const statuses = []
    for (let i = 0; i < 45; i++) {
      statuses.push((await server.app.inject({ method: 'GET', url: tokens, headers })).statusCode)
    }
    expect(statuses.slice(0, 5)).toEqual(Array(5).fill(401))
    expect(statuses.at(-1)).toBe(429)
    expect((await server.ask('GET', tokens, { as: somebody() })).statusCode).toBe(200)
  })

  it('health checks are never refused', async () => {
    for (let i = 0; i < 60; i++) {
      expect((await server.app.inject('/healthz')).statusCode).toBe(200)
    }
  })
})

describe('too late', () => {
  it('an overloaded process answers 503 with Retry-After, and its health checks', async () => {
    // Every process is later than this, so the first sample says: overloaded.
    const app = await buildApp(server.platform, { loopDelayMaxMs: 1e-9 })
    try {
      await eventually(
        async () => {
          const answer = await app.inject('/api/v2/about')
          expect([answer.statusCode, answer.json().code]).toEqual([503, 'HMD_UNAVAILABLE'])
          expect(answer.headers['retry-after']).toBe('5')
        },
        { timeoutMs: 10_000, everyMs: 50, what: 'the first sample' },
      )
      expect((await app.inject('/healthz')).statusCode).toBe(200)
      expect((await app.inject('/readyz')).statusCode).toBe(200)
    } finally {
      await app.close()
    }
  })
})
