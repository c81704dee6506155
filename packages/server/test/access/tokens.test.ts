// API tokens: shown once, kept as a hash, narrowed by scopes and by the role of their person, gone
// within seconds of being revoked.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { useServer } from '../support/server.ts'

let offsetMs = 0
const server = useServer({}, { clock: () => new Date(Date.now() + offsetMs) })
const tokens = '/api/v2/tokens'

async function made(as: string, body: object = {}, headers: Record<string, string> = {}) {
  const asking = { as, body: { name: 'robot', scopes: ['search:read'], ...body }, headers }
  return server.ask('POST', tokens, asking)
}

const withToken = (method: string, url: string, secret: string, body?: object) =>
  server.ask(method, url, { headers: { authorization: `Bearer ${secret}` }, ...(body && { body }) })

const setRole = (name: string, role: string) =>
  server.db.query(
    `update hermod.person p set role = $2 from hermod.person_identity i
      where i.person_id = p.id and i.value = $1`,
    [`sub-${name}`, role],
  )

beforeAll(async () => {
  for (const name of ['ada', 'grace', 'root']) await server.ask('GET', tokens, { as: name })
})

describe('making a token', () => {
  it('works as docs/operations/access.md shows it', async () => {
    const page = readFileSync(new URL('../../../../docs/operations/access.md', import.meta.url), 'utf8')
    const [, method = '', url = '', body = ''] = /```http\n(\w+) (\S+)[\s\S]*?\n\n([\s\S]*?)```/.exec(page) ?? []
    const answer = await server.ask(method, url, { as: 'ada', body: JSON.parse(body) })
    expect(answer.statusCode).toBe(201)
  })

  it('shows the secret once and keeps its SHA-256 alone', async () => {
    const answer = await made('ada')
    expect(answer.statusCode).toBe(201)
    const { id, secret, prefix } = answer.json()
    expect(secret).toMatch(/^hmd_[0-9a-f]{8}_[\w-]{43}$/)
    expect(secret.split('_')[1]).toBe(prefix)
    const [row] = await server.db.query('select * from hermod.api_token where id = $1', [id])
    expect(row?.hash).toEqual(createHash('sha256').update(secret).digest())
    expect(JSON.stringify(row)).not.toContain(secret.slice(13))
    const listed = await server.ask('GET', tokens, { as: 'ada' })
    expect(listed.body).toContain(prefix)
    expect(listed.body).not.toContain(secret.slice(13))
  })

  it('a repeated request is told that the secret is gone, and the secret is stored nowhere', async () => {
    const headers = { 'idempotency-key': 'robot-1' }
    const [first, second] = [await made('ada', {}, headers), await made('ada', {}, headers)]
    expect(second.json()).toEqual({ ...first.json(), secret: null })
    expect(second.headers['idempotent-replayed']).toBe('true')
    const [{ found } = { found: -1 }] = await server.db.query<{ found: number }>(
      `select count(*)::int as found from hermod.idempotency where body like '%' || $1 || '%'`,
      [first.json().secret.slice(13)],
    )
    expect(found).toBe(0)
  })

  it.each([
    ['an unknown scope', { scopes: ['everything'] }, '/scopes/0'],
    ['a scope that makes tokens', { scopes: ['token:own'] }, '/scopes/0'],
    ['no scope', { scopes: [] }, '/scopes'],
    ['no name', { name: '' }, '/name'],
    ['an unknown field', { personId: '1' }, '/personId'],
    ['an expiry in the past', { expiresAt: '2020-01-01T00:00:00Z' }, '/expiresAt'],
    ['an expiry beyond a year', { expiresAt: '2999-01-01T00:00:00Z' }, '/expiresAt'],
    ['an expiry that is no time', { expiresAt: 'soon' }, '/expiresAt'],
  ])('%s is refused by its field', async (_what, body, pointer) => {
    const answer = await made('ada', body)
    expect(answer.statusCode).toBe(400)
    expect(answer.json().errors[0].pointer).toBe(pointer)
  })

  it('nobody gives away what they lack', async () => {
    const answer = await made('ada', { scopes: ['audit:read'] })
    expect(answer.statusCode).toBe(403)
    expect(answer.json().detail).toContain('audit:read')
  })

  it('a role that the issuer lends for a sign-in cannot be put into a token', async () => {
    const body = { name: 'robot', scopes: ['audit:read'] }
    const answer = await server.ask('POST', tokens, { as: 'grace', role: 'operator', body })
    expect(answer.statusCode).toBe(403)
    expect(answer.json().detail).toContain('Your issuer lends you audit:read')
    await setRole('grace', 'operator')
    expect((await server.ask('POST', tokens, { as: 'grace', role: 'operator', body })).statusCode).toBe(201)
  })

  it('one person has at most 50 live ones', async () => {
    await server.ask('GET', tokens, { as: 'many' })
    const answers = []
    for (let i = 0; i < 51; i++) answers.push((await made('many')).statusCode)
    expect(answers).toEqual([...Array(50).fill(201), 422])
  })
})

describe('using a token', () => {
  it('does what its scopes say and nothing else', async () => {
    const { secret } = (await made('ada')).json()
    expect((await withToken('GET', '/api/v2/health', secret)).statusCode).toBe(200)
    const refused = await withToken('POST', tokens, secret, { name: 'x', scopes: ['search:read'] })
    expect(refused.statusCode).toBe(403)
  })

  it('loses what its person loses, within 3 seconds', async () => {
    await setRole('grace', 'operator')
    const { secret } = (await made('grace', { scopes: ['document:write', 'search:read'] })).json()
    const whoIs = async () => (await withToken('GET', '/api/v2/health', secret)).statusCode
    expect(await whoIs()).toBe(200)
    await server.db.query(
      `update hermod.person p set deleted_at = now() from hermod.person_identity i
        where i.person_id = p.id and i.value = 'sub-grace'`,
    )
    offsetMs += 3_000
    expect(await whoIs()).toBe(401)
    await server.db.query('update hermod.person set deleted_at = null where merged_into is null')
  })

  it('notes when it was used, at most once a minute', async () => {
    const { id, secret } = (await made('ada')).json()
    const used = async () => {
      await withToken('GET', '/api/v2/health', secret)
      const [row] = await server.db.query<{ last_used_at: Date | null }>(
        'select last_used_at from hermod.api_token where id = $1',
        [id],
      )
      return row?.last_used_at?.getTime()
    }
    const first = await used()
    expect(first).toBeDefined()
    offsetMs += 30_000
    expect(await used()).toBe(first)
    offsetMs += 31_000
    expect(await used()).toBeGreaterThan(first ?? Number.POSITIVE_INFINITY)
  })

  it.each([
    ['a changed last character', (s: string) => s.slice(0, -1) + (s.endsWith('A') ? 'B' : 'A')],
    ['another prefix', (s: string) => s.replace(/^hmd_.{8}/, 'hmd_00000000')],
    ['its prefix alone', (s: string) => s.slice(0, 12)],
    ['more after its end', (s: string) => `${s}x`],
    ['upper case', (s: string) => s.toUpperCase()],
  ])('%s is 401', async (_what, change) => {
    const { secret } = (await made('ada')).json()
    expect((await withToken('GET', '/api/v2/health', change(secret))).statusCode).toBe(401)
  })

  it('ends when it expires', async () => {
    const expiresAt = new Date(Date.now() + offsetMs + 60_000).toISOString()
    const { secret } = (await made('ada', { expiresAt })).json()
    expect((await withToken('GET', '/api/v2/health', secret)).statusCode).toBe(200)
    offsetMs += 61_000
    expect((await withToken('GET', '/api/v2/health', secret)).statusCode).toBe(401)
  })
})

describe('revoking a token', () => {
  it('works within 3 seconds, twice without harm, and stays in the list', async () => {
    const { id, secret } = (await made('ada')).json()
    const used = async () => (await withToken('GET', '/api/v2/health', secret)).statusCode
    expect(await used()).toBe(200)
    for (const _ of [1, 2]) {
      expect((await server.ask('DELETE', `${tokens}/${id}`, { as: 'ada' })).statusCode).toBe(204)
    }
    offsetMs += 3_000
    expect(await used()).toBe(401)
    const { items } = (await server.ask('GET', tokens, { as: 'ada' })).json()
    expect(items.find((one: { id: string }) => one.id === id).revokedAt).not.toBeNull()
    const audit = await server.db.query(
      `select action from hermod.person_audit where changes ->> 'token' = $1 order by id`,
      [id],
    )
    expect(audit).toEqual([{ action: 'token_created' }, { action: 'token_revoked' }])
  })

  it("somebody else's is 404, and an admin's to revoke", async () => {
    const { id, secret } = (await made('ada')).json()
    const other = await server.ask('DELETE', `${tokens}/${id}`, { as: 'grace' })
    expect(other.statusCode).toBe(404)
    const admin = `/api/v2/admin/tokens/${id}`
    expect((await server.ask('DELETE', admin, { as: 'grace', role: 'operator' })).statusCode).toBe(403)
    expect((await server.ask('DELETE', admin, { as: 'root', role: 'admin' })).statusCode).toBe(204)
    offsetMs += 3_000
    expect((await withToken('GET', '/api/v2/health', secret)).statusCode).toBe(401)
  })

  it('admins see everybody’s, page by page, each once', async () => {
    const seen: string[] = []
    let url: string | undefined = '/api/v2/admin/tokens?limit=20'
    while (url !== undefined) {
      const answer = await server.ask('GET', url, { as: 'root', role: 'admin' })
      expect(answer.statusCode).toBe(200)
      seen.push(...answer.json().items.map(({ id }: { id: string }) => id))
      url = /<(.*)>/.exec(String(answer.headers.link ?? ''))?.[1]
    }
    const all = await server.db.query<{ id: string }>('select id from hermod.api_token')
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen.length).toBe(all.length)
  })
})

describe('a changed role of a signed-in person', () => {
  it('counts within 3 seconds', async () => {
    const asking = { as: 'alan', role: 'reader' as const }
    const admin = () => server.ask('GET', '/api/v2/admin/tokens', asking)
    const token = `Bearer ${await server.token('alan', 'reader')}`
    const status = async () =>
      (await server.ask('GET', '/api/v2/admin/tokens', { headers: { authorization: token } })).statusCode
    expect((await admin()).statusCode).toBe(403)
    expect(await status()).toBe(403)
    await setRole('alan', 'admin')
    offsetMs += 3_000
    expect(await status()).toBe(200)
    await setRole('alan', 'reader')
    offsetMs += 1_000
    expect(await status()).toBe(200)
    offsetMs += 2_000
    expect(await status()).toBe(403)
  })
})
