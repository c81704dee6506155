/**
 * The functions of the schema `outbox`: one file per verb in `routines/`, applied whole whenever their
 * text changed. `create or replace` keeps what is granted and what is running. It refuses another result
 * and other names of parameters: such a function gets a new name, or `retired.sql` drops its old form.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Database, type PoolClient, select } from './database.ts'
import { HermodError } from './errors.ts'
import { plainText } from './numbered-sql.ts'
import { version } from './version.ts'

/** What is gone comes first; a function after those that its text names at creation; `grants` last: it finds them all. */
export const routineNames: readonly string[] = [
  ...['retired', 'clock', 'hash', 'partition', 'emit', 'identity', 'kind', 'fields', 'sequence', 'cursor'],
  ...['again', 'claim', 'lease', 'park', 'read', 'subscribe', 'define', 'ledger', 'settle', 'breaker', 'worker'],
  ...['auditor', 'rebase', 'status', 'upkeep', 'retention', 'prune', 'trim', 'operator', 'watch', 'journey', 'replay'],
  ...['waiting', 'grants'],
]

export interface Routines {
  readonly sql: string
  readonly hash: string
  /** Of the library they came with. */
  readonly version: string
}

interface Installed {
  readonly hash: string
  readonly version: string
}

/** The routines of this library, in order. */
export function routines(): Routines {
  const sql = routineNames
    .map((name) => readFileSync(new URL(`../routines/${name}.sql`, import.meta.url), 'utf8'))
    .join('\n')
  return { sql, hash: createHash('sha256').update(sql).digest('hex'), version }
}

/** True: they were applied. Newer routines stay: the statements of this library work with them too. */
export async function applyRoutines(client: PoolClient, { sql, hash, version } = routines()): Promise<boolean> {
  if (isCurrent(await installedRoutines(client), { hash, version })) return false
  await client.query(plainText(sql))
  await select(
    client,
    `insert into outbox.routine (hash, version) values ($1, $2)
     on conflict (only_row) do update set hash = excluded.hash, version = excluded.version, applied_at = default`,
    [hash, version],
  )
  return true
}

/** Grants for tables that were added while the routines did not change. */
export async function applyGrants(client: PoolClient): Promise<void> {
  await client.query('select outbox.apply_grants()')
}

export async function assertRoutines(db: Database): Promise<void> {
  const ours = routines()
  const found = await installedRoutines(db)
  if (isCurrent(found, ours)) return
  const has = found === undefined ? 'no routines' : `the routines of ${found.version}`
  throw new HermodError('HMD_MIGRATION_NEEDED', `the schema has ${has}, this library needs those of ${ours.version}`)
}

/** Undefined: none were applied yet. */
export async function installedRoutines(db: Database | PoolClient): Promise<Installed | undefined> {
  const [table] = await select(db, `select to_regclass('outbox.routine')::text as name`)
  if (!table?.name) return undefined
  const [row] = await select(db, 'select hash, version from outbox.routine')
  return row === undefined ? undefined : { hash: String(row.hash), version: String(row.version) }
}

/** Nothing to apply. */
export function isCurrent(found: Installed | undefined, ours: Installed): boolean {
  return found !== undefined && (found.hash === ours.hash || isNewer(found.version, ours.version))
}

/** By the order of semantic versions: 0.10.0 after 0.9.1, 1.0.0 after 1.0.0-beta.2. */
export function isNewer(version: string, than: string): boolean {
  const [a, b] = [version.split('-', 2), than.split('-', 2)]
  const byNumber = compare(a[0], b[0])
  if (byNumber !== 0) return byNumber > 0
  return a[1] === undefined ? b[1] !== undefined : b[1] !== undefined && compare(a[1], b[1]) > 0
}

function compare(a = '', b = ''): number {
  return a.localeCompare(b, 'en', { numeric: true })
}
