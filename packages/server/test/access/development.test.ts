// The development sign-in: real tokens for demo people, for this machine alone.
import { describe, expect, it } from 'vitest'
import { demoPeople, developmentIssuer } from '../../src/access/development.ts'
import type { Config } from '../../src/config.ts'
import { useServer } from '../support/server.ts'

const limits = { bodyBytes: 1_048_576, documentBytes: 4_194_304, perMinute: 1_000 }
const server = useServer({ development: true, limits })
const url = '/api/v2/dev/sign-in'
const signIn = (headers: Record<string, string> = {}, person = 'ada') =>
  server.ask('POST', url, { body: { person }, headers: { host: 'localhost:4400', ...headers } })

describe('signing in', () => {
  it('gives a token that works, with the role of the demo person', async () => {
    for (const { name, role } of demoPeople) {
      const { token } = (await signIn({}, name)).json()
      const headers = { authorization: `Bearer ${token}` }
      const answer = await server.ask('GET', '/api/v2/admin/tokens', { headers })
      expect([name, answer.statusCode]).toEqual([name, role === 'admin' ? 200 : 403])
    }
  })

  it('nobody else is known', async () => {
    expect((await signIn({}, 'mallory')).statusCode).toBe(404)
    expect((await signIn({}, '__proto__')).statusCode).toBe(404)
  })

  it('a token of another process is worth nothing', async () => {
    const other = await developmentIssuer(server.platform.config)
    const { token } = await other.token(demoPeople[0] as (typeof demoPeople)[0])
    const headers = { authorization: `Bearer ${token}` }
    expect((await server.ask('GET', '/api/v2/tokens', { headers })).statusCode).toBe(401)
  })

  it.each([
    ['localhost', { host: 'localhost' }],
    ['127.0.0.1 with a port', { host: '127.0.0.1:4400' }],
    ['IPv6', { host: '[::1]:4400' }],
    [
      'a page of this server',
      { host: 'localhost:4400', origin: 'http://localhost:4400', 'sec-fetch-site': 'same-origin' },
    ],
  ] as [string, Record<string, string>][])('%s may', async (_what, headers) => {
    expect((await signIn(headers)).statusCode).toBe(200)
  })

  it.each([
    ['a name bent to this machine', { host: 'evil.example:4400' }],
    ['a name that looks like this machine', { host: '127.0.0.1.evil.example' }],
    ['localhost as a subdomain', { host: 'localhost.evil.example' }],
    ['a page of another site', { origin: 'https://evil.example' }],
    ['a page on another port', { origin: 'http://localhost:3000' }],
    ['a page without a name', { origin: 'null' }],
    ['a request the browser calls foreign', { 'sec-fetch-site': 'cross-site' }],
    ['a page of the same site', { 'sec-fetch-site': 'same-site' }],
    ['somebody behind a proxy', { 'x-forwarded-for': '203.0.113.7' }],
    ['somebody behind another proxy', { forwarded: 'for=203.0.113.7' }],
  ] as [string, Record<string, string>][])('%s may not', async (_what, headers) => {
    const answer = await signIn(headers)
    expect([answer.statusCode, answer.json().code]).toEqual([403, 'HMD_FORBIDDEN'])
  })

  it('somebody on another machine may not', async () => {
    const answer = await server.app.inject({
      method: 'POST',
      url,
      payload: { person: 'ada' },
      remoteAddress: '192.0.2.7',
      headers: { host: 'localhost:4400' },
    })
    expect(answer.statusCode).toBe(403)
  })

  it('a form of another site is 415: browsers send no JSON without asking first', async () => {
    const headers = { host: 'localhost:4400', 'content-type': 'text/plain' }
    const answer = await server.ask('POST', url, { body: '{"person":"ada"}', headers })
    expect(answer.statusCode).toBe(415)
  })
})

describe('signing in again and again', () => {
  it('has a bucket of its own: 50 a minute where 1,000 requests are allowed', async () => {
    const statuses: number[] = []
    for (let i = 0; i < 51; i++) statuses.push((await signIn()).statusCode)
    expect(statuses.at(-1)).toBe(429)
    expect((await server.ask('GET', '/api/v2/about')).statusCode).toBe(200)
  })
})

describe('where it does not exist', () => {
  const config = (more: Partial<Config>) => ({ ...server.platform.config, ...more })

  it.each(['0.0.0.0', '::', '192.168.1.7', 'hermod.example.org', ''])('it refuses to start on %j', async (host) => {
    await expect(developmentIssuer(config({ host }))).rejects.toMatchObject({
      code: 'HMD_OPTION_INVALID',
      field: 'development',
    })
  })

  it('it refuses to start behind a proxy', async () => {
    await expect(developmentIssuer(config({ trustProxy: 1 }))).rejects.toMatchObject({
      code: 'HMD_OPTION_INVALID',
    })
  })
})

describe('without development', () => {
  const plain = useServer()
  it('there is no such route', async () => {
    const headers = { host: 'localhost' }
    const answer = await plain.ask('POST', url, { body: { person: 'ada' }, headers })
    expect(answer.statusCode).toBe(404)
  })
})
