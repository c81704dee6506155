// Somebody else's objects, and tokens that are none: every operation of the OpenAPI document × every
// kind of bad token × every kind of foreign or impossible id. Nothing is told, nothing is changed.

import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startIssuer, type TestIssuer } from '../support/issuer.ts'
import { useServer } from '../support/server.ts'
import { bearer, type Ids, idsOf, type Operation, operationsOf, perform } from './world.ts'

const server = useServer()
let foreign: TestIssuer
let operations: Operation[] = []
const olgas = new Map<Operation, Ids>()
let performed = 0

beforeAll(async () => {
  foreign = await startIssuer('foreign')
  operations = (await operationsOf(server)).filter(({ open }) => !open)
  for (const operation of operations.filter(({ params }) => params.length > 0)) {
    olgas.set(operation, await idsOf(server, operation, 'olga'))
  }
})
afterAll(async () => {
  await foreign.close()
  console.log(`sweep: ${operations.length} operations, ${performed} combinations`)
})

const now = () => Math.floor(Date.now() / 1000)
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
/** Olga herself, as far as the claims go. */
const olga = () => ({
  sub: 'sub-olga',
  email: 'olga@example.org',
  email_verified: true,
  roles: ['admin'],
})
const unsigned = (alg: string) =>
  `${part({ alg, typ: 'JWT', kid: 'google-1' })}.${part({
    ...olga(),
    iss: server.issuer.config.issuer,
    aud: 'hermod',
    exp: now() + 600,
  })}`

function hmacWithPublicKey(): string {
  const head = unsigned('HS256')
  const hmac = createHmac('sha256', server.issuer.publicKeyPem).update(head)
  return `${head}.${hmac.digest('base64url')}`
}

const badTokens: [string, () => Promise<string> | string | undefined][] = [
  ['none at all', () => undefined],
  ['one of a foreign issuer', () => foreign.token(olga())],
  ['one of a foreign issuer in our name', () => foreign.token({ ...olga(), iss: server.issuer.config.issuer })],
  ['an expired one', () => server.issuer.token({ ...olga(), exp: now() - 3_600 })],
  ['one for another audience', () => server.issuer.token({ ...olga(), aud: 'payroll' })],
  ['one signed by nobody', () => `${unsigned('none')}.`],
  ['one signed with the public key', hmacWithPublicKey],
  ['garbage', () => 'garbage'],
  ['an API token that was never given out', () => `hmd_00000000_${'A'.repeat(43)}`],
  ['1 MB', () => 'a'.repeat(1_048_576)],
]

/** Everything the rooms keep, as one number. */
async function digest(): Promise<string> {
  const tables = await server.db.query<{ name: string }>(
    `select quote_ident(tablename) as name from pg_tables where schemaname = 'hermod' order by 1`,
  )
  const parts = tables.map(
    ({ name }) => `(select coalesce(sum(hashtextextended(t::text, 0)), 0) from hermod.${name} t)`,
  )
  const [row] = await server.db.query<{ all: string }>(`select array[${parts}]::text as all`)
  return row?.all ?? ''
}

describe('a token that is none', () => {
  it.each(badTokens)('%s: 401 on every operation, and nothing changes', async (_what, make) => {
    const before = await digest()
    const token = await make()
    const authorization = token && `Bearer ${token}`
    for (const operation of operations) {
      const ids = olgas.get(operation) ?? {}
      const answer = await perform(server, operation, { ids, authorization })
      performed++
      expect([operation.path, answer.statusCode]).toEqual([operation.path, 401])
      expect(answer.json().code).toBe('HMD_UNAUTHENTICATED')
      expect(answer.body).not.toContain('Secret')
    }
    expect(await digest()).toBe(before)
  })
})

/** Published documents and people are there for everybody to read; nothing else of Olga is. */
const readByAll = /^GET \/api\/v2\/(documents\/\{id\}(\/history|\/sync)?|people\/\{id\})$/

describe('the ids of somebody else', () => {
  it.each(['reader', 'editor'] as const)('are 403 or 404 for another %s', async (role) => {
    const authorization = await bearer(server, 'mallory', role)
    for (const [operation, ids] of olgas) {
      const name = `${operation.method} ${operation.path}`
      const answer = await perform(server, operation, { ids, authorization })
      performed++
      if (readByAll.test(name)) continue
      expect([name, [403, 404].includes(answer.statusCode)]).toEqual([name, true])
      expect(answer.body).not.toContain('Secret')
    }
  })

  it('Olga’s things are as they were', async () => {
    const [row] = await server.db.query(
      `select (select count(*) from hermod.document where version > 1)::int as changed,
              (select count(*) from hermod.api_token where revoked_at is not null)::int as revoked,
              (select count(*) from hermod.person where deleted_at is not null)::int as removed`,
    )
    expect(row).toEqual({ changed: 0, revoked: 0, removed: 0 })
  })
})

const impossible = [
  ...['0', '-1', '999999999999999999', '9223372036854775808', '1e3', 'null', '%00', '*'],
  ...["1'%20or%20'1'='1", '..%2f..%2fetc', '%F0%9F%92%A9', 'a'.repeat(599)],
  ...['00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-00000000000G'],
]

describe('ids that nobody has', () => {
  it.each(impossible)('%s: a 4xx everywhere', async (id) => {
    const authorization = await bearer(server, 'root', 'admin')
    for (const [operation, own] of olgas) {
      const ids = Object.fromEntries(Object.keys(own).map((name) => [name, id]))
      const { statusCode } = await perform(server, operation, { ids, authorization })
      performed++
      const name = `${operation.method} ${operation.path}`
      expect([name, statusCode >= 400 && statusCode < 500]).toEqual([name, true])
    }
  })
})
