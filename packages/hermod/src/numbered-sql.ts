/**
 * Brings a schema up to date from a folder of plain numbered SQL, in one transaction. Any number of
 * processes may start at once; a schema newer than the folder is refused. The server's own migrations
 * run through it too.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { type Database, type PoolClient, select, transaction } from './database.ts'
import { HermodError } from './errors.ts'

export interface Migration {
  readonly version: number
  readonly name: string
  readonly sql: string
  readonly hash: string
}

export interface NumberedSql {
  /** Holds `0001_tables.sql`, `0002_….sql`. */
  readonly folder: URL
  /** A plain lower-case name; created if it is missing. */
  readonly schema: string
  /** Advisory lock that makes processes wait for each other. */
  readonly lock: number
  /** Runs in the same transaction after the migrations, even if none was missing; returns the names of what it applied. */
  readonly after?: (client: PoolClient, applied: readonly string[]) => Promise<readonly string[]>
}

/** The migrations of a folder, in order. */
export function readMigrations(folder: URL): Migration[] {
  const files = readdirSync(folder).filter((name) => /^\d{4}_[a-z_]+\.sql$/.test(name))
  return files.sort().map((name) => {
    const sql = readFileSync(new URL(name, folder), 'utf8')
    const hash = createHash('sha256').update(sql).digest('hex')
    return { version: Number(name.slice(0, 4)), name: name.slice(0, -4), sql, hash }
  })
}

/** Names of what was applied; nothing when the schema was up to date. */
export async function applyMigrations(db: Database, { folder, schema, lock, after }: NumberedSql): Promise<string[]> {
  const known = readMigrations(folder)
  return transaction(db, async (client) => {
    await begin(client, schema, lock)
    const rows = await installed(client, schema)
    refuseForeign(rows, known)
    const missing = known.filter(({ version }) => !rows.some((row) => Number(row.version) === version))
    for (const migration of missing) await apply(client, schema, migration)
    const applied = missing.map(({ name }) => name)
    return [...applied, ...((await after?.(client, applied)) ?? [])]
  })
}

/** Refuses a schema that is older or newer than the folder, without changing anything. */
export async function assertApplied(
  db: Database,
  { folder, schema }: Pick<NumberedSql, 'folder' | 'schema'>,
): Promise<void> {
  const known = readMigrations(folder)
  const [found] = await select(db, 'select to_regclass($1)::text as name', [`${schema}.migration`])
  const rows = found?.name ? await installed(db, schema) : []
  refuseForeign(rows, known)
  const missing = known.filter(({ version }) => !rows.some((row) => Number(row.version) === version))
  if (missing.length > 0) {
    throw new HermodError('HMD_MIGRATION_NEEDED', `the schema lacks ${missing.map(({ name }) => name).join(', ')}`)
  }
}

/** The second process waits for the lock, then finds what the first one applied. */
async function begin(client: PoolClient, schema: string, lock: number): Promise<void> {
  // The text of a migration means the same whatever the database's settings are.
  await client.query(`set local standard_conforming_strings = on`)
  await client.query(`set local check_function_bodies = on`)
  await client.query(`set local search_path = pg_catalog, pg_temp`)
  await client.query(`set local lock_timeout = '60s'`)
  await client.query(`select pg_advisory_xact_lock(${lock})`)
  await client.query(`set local client_min_messages = warning`)
  await client.query(`create schema if not exists ${schema}`)
  await client.query(`create table if not exists ${schema}.migration (
    version integer primary key, name text not null, hash text not null, applied_at timestamptz not null default now())`)
}

async function apply(client: PoolClient, schema: string, { version, name, hash, sql }: Migration): Promise<void> {
  await select(client, `insert into ${schema}.migration (version, name, hash) values ($1, $2, $3)`, [
    version,
    name,
    hash,
  ])
  await client.query(plainText(sql))
}

/** Comments hold drawings; a database of another encoding (LATIN1) cannot even read these. */
export function plainText(sql: string): string {
  return sql.replace(/\P{ASCII}/gu, '?')
}

function installed(client: PoolClient | Database, schema: string) {
  return select(client, `select version::text, name, hash from ${schema}.migration m order by m.version`)
}

function refuseForeign(rows: Awaited<ReturnType<typeof installed>>, known: readonly Migration[]): void {
  for (const row of rows) {
    const ours = known.find(({ version }) => version === Number(row.version))
    if (ours === undefined) {
      throw new HermodError(
        'HMD_MIGRATION_NEWER',
        `the schema has migration ${row.name}, which this library does not know`,
      )
    }
    if (ours.hash !== row.hash) {
      throw new HermodError('HMD_MIGRATION_CHANGED', `migration ${row.name} was applied with another text`)
    }
  }
}
