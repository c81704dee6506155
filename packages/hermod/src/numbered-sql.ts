/**
 * Brings a schema up to date from a folder of plain numbered SQL, one transaction each. Any number
 * of processes may start at once; a schema newer than the folder is refused. The server's own
 * migrations run through it too.
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
  /** A plain lower-case name; made when it is missing. */
  readonly schema: string
  /** Advisory lock that makes processes wait for each other. */
  readonly lock: number
  /** In the transaction of each migration, after its SQL. */
  readonly after?: (client: PoolClient, migration: Migration) => Promise<void>
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
export async function applyMigrations(db: Database, source: NumberedSql): Promise<string[]> {
  const known = readMigrations(source.folder)
  const applied: string[] = []
  for (const migration of known) {
    if (await apply(db, source, migration, known)) applied.push(migration.name)
  }
  return applied
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

/** The version row first: whoever comes second waits for the lock, then finds it. */
async function apply(
  db: Database,
  { schema, lock, after }: NumberedSql,
  migration: Migration,
  known: readonly Migration[],
): Promise<boolean> {
  return transaction(db, async (client) => {
    await client.query(`set local lock_timeout = '60s'`)
    await client.query(`select pg_advisory_xact_lock(${lock})`)
    await client.query(`set local client_min_messages = warning`)
    await client.query(`create schema if not exists ${schema}`)
    await client.query(`create table if not exists ${schema}.migration (
      version integer primary key, name text not null, hash text not null, applied_at timestamptz not null default now())`)
    const rows = await installed(client, schema)
    refuseForeign(rows, known)
    if (rows.some((row) => Number(row.version) === migration.version)) return false
    await select(client, `insert into ${schema}.migration (version, name, hash) values ($1, $2, $3)`, [
      migration.version,
      migration.name,
      migration.hash,
    ])
    await client.query(migration.sql)
    await after?.(client, migration)
    return true
  })
}

function installed(client: PoolClient | Database, schema: string) {
  return select(client, `select version::text, name, hash from ${schema}.migration order by version`)
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
