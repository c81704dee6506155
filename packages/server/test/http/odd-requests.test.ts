// Requests that nobody sends by accident: methods, times, numbers, ids and paths at the edge of what a type allows. Each is refused by
// name; none is an error of ours.

import { get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { createPublished, ok } from '../documents/people.ts'
import { type Asking, useServer } from '../support/server.ts'

const server = useServer()

const statusOf = async (method: string, url: string, asking: Asking = {}) => {
  const answer = await server.ask(method, url, { as: 'ada', role: 'admin', ...asking })
  const { code = '' } = String(answer.headers['content-type']).includes('json') && answer.body ? answer.json() : {}
  return `${answer.statusCode} ${code}`.trim()
}

describe('a method', () => {
  it.each(['QUERY', 'PROPFIND', 'TRACE', 'SEARCH', 'LOCK', 'MKCOL'])('%s is not known here', async (method) => {
    expect(await statusOf(method, '/api/v2/documents')).toBe('405 HMD_METHOD_NOT_ALLOWED')
    expect(await statusOf(method, '/api/v2/nothing')).toBe('404 HMD_NOT_FOUND')
  })
})

it('a path of its own is not an id: /people/import knows POST alone', async () => {
  for (const method of ['GET', 'PATCH', 'PUT', 'DELETE']) {
    const answer = await server.ask(method, '/api/v2/people/import', { as: 'ada', role: 'admin', version: 1 })
    expect(answer.json(), method).toMatchObject({ status: 405, code: 'HMD_METHOD_NOT_ALLOWED' })
    expect(answer.headers.allow).toBe('POST')
  }
})

describe('a time', () => {
  const times = [
    '2026-01-01T00:00:00+16:00',
    '2026-01-01T00:00:00-16:00',
    '0000-01-01T00:00:00Z',
    '2026-12-31T23:59:60Z',
  ]
  const lists = ['documents', 'drafts', 'audit']
  it.each(lists.flatMap((list) => times.map((time) => [list, time] as const)))('/%s?since=%s', async (list, time) => {
    const url = `/api/v2/${list}?since=${encodeURIComponent(time)}`
    expect(await statusOf('GET', url)).toBe('400 HMD_REQUEST_INVALID')
  })

  it.each(times)('%s in a search, a token and an import', async (time) => {
    const bound = `/api/v2/search?filter=${encodeURIComponent(`modifiedAt>=${time}`)}`
    expect(await statusOf('GET', bound)).toBe('400 HMD_REQUEST_INVALID')
    const token = { name: 'x', scopes: ['search:read'], expiresAt: time }
    expect(await statusOf('POST', '/api/v2/tokens', { body: token })).toBe('400 HMD_REQUEST_INVALID')
    const row = { title: 'T', docType: 'RFC', product: 'P', createdAt: time }
    const answer = await server.ask('POST', '/api/v2/imports?dryRun=true', {
      as: 'ada',
      role: 'operator',
      body: `${JSON.stringify(row)}\n`,
      headers: { 'content-type': 'application/x-ndjson' },
    })
    expect(answer.json().errors).toMatchObject([{ pointer: '/createdAt' }])
  })

  it('at the edge is taken', async () => {
    for (const time of ['2026-01-01T00:00:00+14:00', '0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z']) {
      expect(await statusOf('GET', `/api/v2/documents?since=${encodeURIComponent(time)}`), time).toBe('200')
    }
  })
})

describe('a number', () => {
  it('above 64 bits: of a version, of an entry of the history', async () => {
    const { id } = await createPublished(server, 'ada')
    const version = '9999999999999999999'
    const url = `/api/v2/documents/${id}`
    expect(await statusOf('PATCH', url, { version, body: { title: 'x' } })).toBe('412 HMD_VERSION_STALE')
    expect(await statusOf('DELETE', url, { version })).toBe('412 HMD_VERSION_STALE')
    expect(await statusOf('GET', `${url}/sync?log=${version}`)).toBe('400 HMD_REQUEST_INVALID')
    const { id: person } = await ok(server, 'GET', '/api/v2/me', { as: 'ada' })
    const rename = { version, body: { displayName: 'x' } }
    expect(await statusOf('PATCH', `/api/v2/people/${person}`, rename)).toBe('412 HMD_VERSION_STALE')
  })

  it('that no double holds is refused by its place, also in an import', async () => {
    const text = '{"title":"T","docType":"RFC","product":"P","customFields":{"size":1e999}}'
    const headers = { 'content-type': 'application/json' }
    const answer = await server.ask('POST', '/api/v2/documents', { as: 'ada', body: text, headers })
    expect(answer.json()).toMatchObject({
      status: 400,
      code: 'HMD_JSON_INVALID',
      errors: [{ pointer: '/customFields/size' }],
    })
    const imported = await server.ask('POST', '/api/v2/imports?dryRun=true', {
      as: 'ada',
      role: 'operator',
      body: `${text}\n${text.replace('1e999', '-1e999')}\n`,
      headers: { 'content-type': 'application/x-ndjson' },
    })
    expect(imported.json()).toMatchObject({
      rows: { failed: 2 },
      errors: [{ pointer: '/customFields/size' }, { pointer: '/customFields/size' }],
    })
  })

  it.each([1e300, -1e300, 8.64e12 + 1, Number.MAX_SAFE_INTEGER])(
    'as auth_time: %d is no sign-in',
    async (auth_time) => {
      const claims = { sub: 'sub-ada', email: 'ada@example.org', email_verified: true, roles: ['admin'] }
      const headers = { authorization: `Bearer ${await server.issuer.token({ ...claims, auth_time })}` }
      const me = await server.ask('GET', '/api/v2/me', { headers })
      expect(me.statusCode, me.body).toBe(200)
      expect(me.json().signedInAt).toBeNull()
      const body = { displayName: 'New', role: 'admin' }
      const made = await server.ask('POST', '/api/v2/people', { headers, body })
      expect(made.json().code).toBe('HMD_SIGN_IN_AGAIN')
    },
  )
})

describe('an id', () => {
  const uuid = '5f0c4f0e-2f0b-4f5c-9a39-2f4f3d0c9b11'
  it.each([`urn:uuid:${uuid}`, `{${uuid}}`, uuid.replaceAll('-', '')])('written as %s', async (id) => {
    for (const path of ['documents', 'drafts', 'imports']) {
      expect(await statusOf('GET', `/api/v2/${path}/${id}`), path).toBe('400 HMD_REQUEST_INVALID')
    }
    expect(await statusOf('GET', `/api/v2/audit?document=${id}`)).toBe('400 HMD_REQUEST_INVALID')
  })
})

describe('a path', () => {
  it.each([
    '/docs/static/%2e%2e/x',
    '/docs/static/%2e%2e%2f%2e%2e%2fpackage.json',
    '/docs/static/..%5c..%5cx',
    '/docs/static/%00',
    '/docs/static/nothing.js',
  ])('%s leads nowhere', async (path) => {
    await server.app.listen({ host: '127.0.0.1', port: 0 }).catch(() => {})
    const { port } = server.app.server.address() as AddressInfo
    const answer = await new Promise<IncomingMessage>((resolve, reject) =>
      get({ port, path }, resolve).on('error', reject),
    )
    answer.resume()
    expect([400, 404]).toContain(answer.statusCode)
    expect(answer.headers['content-type']).toContain('application/problem+json')
  })
})
