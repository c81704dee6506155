// People through HTTP: who sees what of whom, and what an administrator does to them.

import { describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { useServer } from '../support/server.ts'

const server = useServer()

/** The id of whoever signs in under this name. */
async function idOf(name: string): Promise<string> {
  return (await server.ask('GET', '/api/v2/me', { as: name })).json().id
}

const asAdmin = { as: 'root', role: 'admin' } as const

async function show(id: string, asking: object = asAdmin) {
  const answer = await server.ask('GET', `/api/v2/people/${id}`, asking)
  const [, version = ''] = /"(\d+)"/.exec(String(answer.headers.etag)) ?? []
  return { status: answer.statusCode, version, body: answer.json(), headers: answer.headers }
}

describe('reading', () => {
  it('GET /me says who, as whom, and what they may do', async () => {
    const answer = await server.ask('GET', '/api/v2/me', { as: 'ada', role: 'operator' })
    expect(answer.statusCode).toBe(200)
    expect(answer.json()).toMatchObject({
      displayName: 'ada',
      role: 'operator',
      identity: 'email:google:ada@example.org',
      permissions: expect.arrayContaining(['audit:read', 'document:write']),
      identities: [{ type: 'email', value: 'ada@example.org', primary: true }, { type: 'oauth_sub' }],
    })
  })

  it('others see a name, oneself and admins see identities and role', async () => {
    const id = await idOf('ada')
    const other = await show(id, { as: 'bob' })
    expect(Object.keys(other.body).sort()).toEqual(['createdAt', 'displayName', 'id', 'updatedAt'])
    expect((await show(id, { as: 'ada' })).body.identities).toHaveLength(2)
    expect((await show(id, { as: 'ada' })).body.merges).toBeUndefined()
    expect((await show(id)).body).toMatchObject({ role: 'editor', merges: [] })
    expect((await show('999999')).status).toBe(404)
    const { version } = await show(id)
    const same = { ...asAdmin, headers: { 'if-none-match': `"${version}"` } }
    expect((await server.ask('GET', `/api/v2/people/${id}`, same)).statusCode).toBe(304)
  })

  it('finds by how a name begins or by a whole address, as text and not as a pattern', async () => {
    for (const name of ['zoe', 'zora', 'z%x', 'Zed']) await idOf(name)
    const find = async (q: string, asking: object = { as: 'bob' }) => {
      const url = `/api/v2/people?q=${encodeURIComponent(q)}`
      const { items } = (await server.ask('GET', url, asking)).json()
      return items.map(({ displayName }: { displayName: string }) => displayName)
    }
    expect(await find('Z')).toEqual(['z%x', 'Zed', 'zoe', 'zora'])
    expect(await find('zo')).toEqual(['zoe', 'zora'])
    expect(await find('ZOE@exam')).toEqual([])
    expect(await find('ZOE@exam', asAdmin)).toEqual(['zoe'])
    expect(await find('ZOE@example.org')).toEqual(['zoe'])
    expect(await find('z%')).toEqual(['z%x'])
    expect(await find('z_')).toEqual([])
    const [first] = (await server.ask('GET', '/api/v2/people?q=zoe', { as: 'bob' })).json().items
    expect(Object.keys(first).sort()).toEqual(['displayName', 'id'])
  })

  it('pages through everybody once, and refuses a cursor of another list', async () => {
    const seen: string[] = []
    let next = '/api/v2/people?limit=2'
    let cursor = ''
    for (let pages = 0; pages < 50 && next !== ''; pages++) {
      const answer = await server.ask('GET', next, { as: 'bob' })
      const { items, nextCursor } = answer.json()
      seen.push(...items.map(({ id }: { id: string }) => id))
      cursor = nextCursor ?? cursor
      next = /<([^>]+)>/.exec(String(answer.headers.link ?? ''))?.[1] ?? ''
    }
    const [{ n }] = (await server.db.query(
      'select count(*)::int as n from hermod.person where deleted_at is null',
    )) as [{ n: number }]
    expect(new Set(seen).size).toBe(n)
    expect(seen).toHaveLength(n)
    const foreign = await server.ask('GET', `/api/v2/people?q=z&cursor=${cursor}`, { as: 'bob' })
    expect(foreign.json()).toMatchObject({ status: 400, code: 'HMD_CURSOR_INVALID' })
  })

  it('an issuer with and without a slash at its end are two', async () => {
    const token = await server.issuer.token({
      iss: `${server.issuer.config.issuer}/`,
      sub: 'sub-ada',
      email: 'ada@example.org',
      email_verified: true,
    })
    const headers = { authorization: `Bearer ${token}` }
    expect((await server.ask('GET', '/api/v2/me', { headers })).statusCode).toBe(401)
  })
})

describe('changing', () => {
  it('creates, renames and gives a role, with the version that was seen', async () => {
    const body = {
      displayName: 'Carla',
      identity: { type: 'email', provider: 'google', value: 'Carla@example.org', verified: true },
    }
    const made = await server.ask('POST', '/api/v2/people', { ...asAdmin, body })
    expect(made.statusCode, made.body).toBe(201)
    const { id, identities } = made.json()
    expect(made.headers.location).toBe(`/api/v2/people/${id}`)
    expect(identities).toMatchObject([{ value: 'Carla@example.org', primary: true }])
    // Her first log-in finds what was prepared for her.
    expect(await idOf('carla')).toBe(id)
    const { version } = await show(id)
    const url = `/api/v2/people/${id}`
    const patch = (change: object, more: object) => server.ask('PATCH', url, { ...asAdmin, body: change, ...more })
    expect((await patch({ displayName: 'C' }, {})).json().code).toBe('HMD_VERSION_NEEDED')
    const stale = await patch({ displayName: 'C' }, { version: 1 })
    expect(stale.json()).toMatchObject({ code: 'HMD_VERSION_STALE', currentVersion: version })
    const renamed = await patch({ displayName: 'Carla B', role: 'operator' }, { version })
    expect(renamed.json()).toMatchObject({ displayName: 'Carla B', role: 'operator' })
    expect(renamed.headers.etag).toBe(`"${Number(version) + 1}"`)
    const same = await patch({ displayName: 'Carla B' }, { version: Number(version) + 1 })
    expect(same.headers.etag).toBe(`"${Number(version) + 1}"`)
  })

  it('refuses by name, and writes nothing', async () => {
    const id = await idOf('dora')
    const { version } = await show(id)
    const bad: readonly (readonly [string, string, object, number, string])[] = [
      ['PATCH', '', { displayName: '' }, 400, 'HMD_REQUEST_INVALID'],
      ['PATCH', '', { displayName: ' x' }, 422, 'HMD_RULE_BROKEN'],
      ['PATCH', '', { displayName: 'a\nb' }, 422, 'HMD_RULE_BROKEN'],
      ['PATCH', '', { role: 'root' }, 400, 'HMD_REQUEST_INVALID'],
      ['PATCH', '', {}, 400, 'HMD_REQUEST_INVALID'],
      ['PATCH', '', { displayName: 'x', isAdmin: true }, 400, 'HMD_REQUEST_INVALID'],
      ['POST', '/identities', { type: 'email', provider: 'google', value: 'x' }, 422, 'HMD_RULE_BROKEN'],
      ['POST', '/identities', { type: 'email', provider: 'nobody', value: 'x@y' }, 422, 'HMD_RULE_BROKEN'],
      ['POST', '/identities', { type: 'ldap_dn', provider: 'corp', value: 'x' }, 422, 'HMD_RULE_BROKEN'],
      ['POST', '/merge', { reason: 'x' }, 400, 'HMD_REQUEST_INVALID'],
      ['POST', '/merge', { into: id, from: id, reason: 'x' }, 400, 'HMD_REQUEST_INVALID'],
      ['POST', '/merge', { into: id, reason: 'x' }, 422, 'HMD_RULE_BROKEN'],
      ['POST', '/merge', { into: '999999', reason: 'x' }, 404, 'HMD_NOT_FOUND'],
      ['POST', '/merge', { into: id }, 400, 'HMD_REQUEST_INVALID'],
    ]
    for (const [method, path, body, status, code] of bad) {
      const url = `/api/v2/people/${id}${path}`
      const answer = await server.ask(method, url, { ...asAdmin, body, version })
      expect([answer.statusCode, answer.json().code], JSON.stringify(body)).toEqual([status, code])
    }
    expect((await show(id)).version).toBe(version)
  })

  it('links, chooses the primary one, unlinks; never the last', async () => {
    const id = await idOf('emil')
    const url = `/api/v2/people/${id}/identities`
    const body = { type: 'ldap_dn', provider: 'corp', value: 'uid=emil,dc=example,dc=org' }
    const linked = (await server.ask('POST', url, { ...asAdmin, body })).json()
    expect(linked.identities).toHaveLength(3)
    const again = await server.ask('POST', url, {
      ...asAdmin,
      body: { ...body, value: 'UID=Emil,dc=example,dc=org' },
    })
    expect(again.json()).toMatchObject({ status: 409, personId: id })
    const byType = (type: string) => linked.identities.find((one: { type: string }) => one.type === type).id
    const primary = await server.ask('POST', `${url}/${byType('ldap_dn')}/primary`, asAdmin)
    expect(primary.json().identities[0]).toMatchObject({ type: 'ldap_dn', primary: true })
    const unlink = async (type: string) => {
      const { version } = await show(id)
      return server.ask('DELETE', `${url}/${byType(type)}`, { ...asAdmin, version })
    }
    expect((await unlink('email')).json()).toMatchObject({
      status: 409,
      identityId: byType('oauth_sub'),
    })
    expect((await unlink('oauth_sub')).statusCode).toBe(204)
    expect((await show(id)).body.identities).toMatchObject([{ type: 'ldap_dn', primary: true }])
    expect((await unlink('ldap_dn')).json()).toMatchObject({ status: 409, code: 'HMD_CONFLICT' })
    // The log-in that was taken away is somebody new.
    await eventually(async () => expect(await idOf('emil')).not.toBe(id), {
      timeoutMs: 10_000,
      everyMs: 200,
      what: 'the old log-in to be forgotten',
    })
  })

  it('an identity of somebody else is not found under this person', async () => {
    const [one, two] = [await idOf('finn'), await idOf('gina')]
    const { body, version } = await show(two)
    const [identity] = body.identities
    const url = `/api/v2/people/${one}/identities/${identity.id}`
    expect((await server.ask('DELETE', url, { ...asAdmin, version })).statusCode).toBe(404)
    expect((await server.ask('POST', `${url}/primary`, asAdmin)).statusCode).toBe(404)
    expect((await show(two)).body.identities).toHaveLength(2)
  })
})

describe('merging', () => {
  it('counts first, merges, follows the old id, shows it in search, and undoes it all', async () => {
    const [hugo, ines] = [await idOf('hugo'), await idOf('ines')]
    await server.work()
    const draft = (
      await server.ask('POST', '/api/v2/drafts', {
        as: 'hugo',
        body: { title: 'Merging', docType: 'RFC', product: 'Labs' },
      })
    ).json()
    expect(draft.id, JSON.stringify(draft)).toBeDefined()
    const found = async (as: string) => {
      const url = '/api/v2/search?q=merging&index=drafts'
      const answer = await server.ask('GET', url, { as })
      return answer.body.includes(draft.id)
    }
    const body = { into: ines, reason: 'one person' }
    const url = `/api/v2/people/${hugo}/merge`
    const counted = await server.ask('POST', `${url}?dryRun=true`, { ...asAdmin, body })
    expect(counted.json()).toMatchObject({
      dryRun: true,
      from: { id: hugo },
      into: { id: ines },
      counts: { 'person_identity.person_id': 2, 'document.created_by': 1 },
    })
    await server.caughtUp()
    expect([await found('hugo'), await found('ines')]).toEqual([true, false])

    const key = { headers: { 'idempotency-key': 'merge-1' } }
    const merged = await server.ask('POST', url, { ...asAdmin, body, ...key })
    expect(merged.statusCode, merged.body).toBe(200)
    const repeated = await server.ask('POST', url, { ...asAdmin, body, ...key })
    expect(repeated.json()).toEqual(merged.json())
    const followed = await show(hugo)
    expect(followed.body.id).toBe(ines)
    expect(followed.headers['content-location']).toBe(`/api/v2/people/${ines}`)
    const { mergeId } = merged.json()
    expect(followed.body.merges).toMatchObject([{ id: mergeId, from: hugo, reason: 'one person' }])
    await server.caughtUp()
    expect(await found('ines')).toBe(true)

    const undone = await server.ask('POST', `/api/v2/people/merges/${mergeId}/undo`, {
      ...asAdmin,
      body: { reason: 'two after all' },
    })
    expect(undone.json()).toEqual({ mergeId, from: hugo, into: ines })
    await server.caughtUp()
    expect(await found('ines')).toBe(false)
    expect((await show(hugo)).body.id).toBe(hugo)
    const { items } = (await server.ask('GET', `/api/v2/people/${hugo}/audit`, asAdmin)).json()
    expect(items.map(({ action }: { action: string }) => action)).toEqual([...['unmerged', 'merged', 'created']])
    expect(items[0]).toMatchObject({
      reason: 'two after all',
      identity: 'email:google:root@example.org',
      endpoint: 'POST /api/v2/people/merges/{mergeId}/undo',
    })
  })

  it('asks for a recent sign-in', async () => {
    const [one, two] = [await idOf('jan'), await idOf('kim')]
    const token = await server.issuer.token({
      sub: 'sub-root',
      email: 'root@example.org',
      email_verified: true,
      roles: ['admin'],
      auth_time: Math.floor(Date.now() / 1000) - 16 * 60,
    })
    const headers = { authorization: `Bearer ${token}` }
    const body = { into: two, reason: 'x' }
    for (const query of ['', '?dryRun=true']) {
      const answer = await server.ask('POST', `/api/v2/people/${one}/merge${query}`, {
        headers,
        body,
      })
      expect(answer.json()).toMatchObject({ status: 403, code: 'HMD_SIGN_IN_AGAIN' })
    }
    const role = await server.ask('PATCH', `/api/v2/people/${one}`, {
      headers: { ...headers, 'if-match': '*' },
      body: { role: 'admin' },
    })
    expect(role.json().code).toBe('HMD_SIGN_IN_AGAIN')
    const renamed = await server.ask('PATCH', `/api/v2/people/${one}`, {
      headers: { ...headers, 'if-match': '*' },
      body: { displayName: 'Jan' },
    })
    expect(renamed.statusCode).toBe(200)
  })
})
