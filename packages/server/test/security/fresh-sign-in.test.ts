// What lasts longer than a sign-in needs a fresh one: an hour after it, nobody makes a privileged token or changes how somebody logs in.

import { beforeAll, describe, expect, it } from 'vitest'
import { ok, personId } from '../documents/people.ts'
import { useServer } from '../support/server.ts'

const server = useServer()
let target = ''

const asking = async (ageMinutes: number) => {
  const auth_time = Math.floor(Date.now() / 1000) - ageMinutes * 60
  const claims = { sub: 'sub-root', email: 'root@example.org', email_verified: true, name: 'root', roles: ['admin'] }
  return { authorization: `Bearer ${await server.issuer.token({ ...claims, auth_time })}` }
}

const codeOf = async (ageMinutes: number, method: string, url: string, body?: object, version?: string) => {
  const headers = await asking(ageMinutes)
  const answer = await server.ask(method, url, { headers, ...(body && { body }), ...(version && { version }) })
  return answer.statusCode < 400 ? String(answer.statusCode) : answer.json().code
}

const identities = async () => {
  const url = `/api/v2/people/${target}`
  const answer = await server.ask('GET', url, { headers: await asking(0) })
  const [, version = ''] = /"(\d+)"/.exec(String(answer.headers.etag)) ?? []
  return { list: answer.json().identities as { id: string; type: string; primary: boolean }[], version }
}

beforeAll(async () => {
  await server.ask('GET', '/api/v2/me', { headers: await asking(0) })
  await server.db.query(
    `update hermod.person set role = 'admin' where id in (select person_id from hermod.person_identity where key = 'sub-root')`,
  )
  target = await personId(server, 'tess')
})

describe('a token', () => {
  const make = (ageMinutes: number, scopes: string[]) =>
    codeOf(ageMinutes, 'POST', '/api/v2/tokens', { name: 'robot', scopes })

  it.each(['person:admin', 'payload:read', 'outbox:operate', 'import:write', 'audit:read'])(
    'with the scope %s needs a fresh sign-in',
    async (scope) => {
      expect(await make(60, [scope])).toBe('HMD_SIGN_IN_AGAIN')
      expect(await make(60, ['search:read', scope])).toBe('HMD_SIGN_IN_AGAIN')
      expect(await make(1, [scope])).toBe('201')
    },
  )

  it('that only reads and writes documents does not', async () => {
    expect(await make(60, ['search:read', 'document:read', 'document:write'])).toBe('201')
  })
})

describe('how somebody logs in', () => {
  it('is changed only after a fresh sign-in: link, choose, unlink', async () => {
    const linked = { type: 'email', provider: 'google', value: 'tess.two@example.org', verified: true }
    const url = `/api/v2/people/${target}/identities`
    expect(await codeOf(60, 'POST', url, linked)).toBe('HMD_SIGN_IN_AGAIN')
    expect(await codeOf(1, 'POST', url, linked)).toBe('201')
    const added = (await identities()).list.find(({ primary, type }) => !primary && type === 'email')?.id
    expect(await codeOf(60, 'POST', `${url}/${added}/primary`)).toBe('HMD_SIGN_IN_AGAIN')
    expect(await codeOf(1, 'POST', `${url}/${added}/primary`)).toBe('200')
    const { version } = await identities()
    expect(await codeOf(60, 'DELETE', `${url}/${added}`, undefined, version)).toBe('HMD_SIGN_IN_AGAIN')
    expect((await identities()).list).toHaveLength(3)
    expect(await codeOf(1, 'DELETE', `${url}/${added}`, undefined, version)).toBe('204')
  })

  it('by an import of people too', async () => {
    await server.db.query('create table public.users (id bigint primary key, email_address text)')
    const body = { table: 'users', dryRun: false }
    expect(await codeOf(60, 'POST', '/api/v2/people/import', body)).toBe('HMD_SIGN_IN_AGAIN')
    expect(await codeOf(1, 'POST', '/api/v2/people/import', body)).toBe('200')
  })
})

it('a revoked token needs no fresh sign-in: closing is never late', async () => {
  const { id } = await ok(
    server,
    'POST',
    '/api/v2/tokens',
    { as: 'tess', body: { name: 'x', scopes: ['search:read'] } },
    201,
  )
  expect(await codeOf(600, 'DELETE', `/api/v2/admin/tokens/${id}`)).toBe('204')
})
