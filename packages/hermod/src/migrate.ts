/**
 * Brings the schema `outbox` up to date: plain numbered SQL, one transaction each. Any number of
 * processes may start at once; a schema newer than this library is refused.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { type Database, type PoolClient, select, transaction } from './database.ts'
import { HermodError } from './errors.ts'

const FOLDER = new URL('../migrations/', import.meta.url)
const LOCK = 4841297200
const MIN_SERVER_VERSION = 140_000
const GRANTS_SINCE = 8

export interface Migration {
  readonly version: number
  readonly name: string
  readonly sql: string
  readonly hash: string
}

export interface MigrateOptions {
  /** 1 to 256, fixed by the first migration; 16 when left out. */
  readonly lanes?: number | undefined
}

export interface MigrateResult {
  readonly applied: readonly string[]
  readonly version: number
}

/** The migrations of this library, in order. */
export function migrations(): Migration[] {
  const files = readdirSync(FOLDER).filter((name) => /^\d{4}_[a-z_]+\.sql$/.test(name))
  return files.sort().map((name) => {
    const sql = readFileSync(new URL(name, FOLDER), 'utf8')
    const hash = createHash('sha256').update(sql).digest('hex')
    return { version: Number(name.slice(0, 4)), name: name.slice(0, -4), sql, hash }
  })
}

export async function migrate(db: Database, options: MigrateOptions = {}): Promise<MigrateResult> {
  refuseLanes(options.lanes)
  await refuseServer(db)
  const known = migrations()
  const applied: string[] = []
  for (const migration of known) {
    if (await apply(db, migration, known)) applied.push(migration.name)
  }
  await fixLanes(db, options.lanes)
  return { applied, version: known.at(-1)?.version ?? 0 }
}

/** Refuses a schema that is older or newer than this library, without changing anything. */
export async function assertMigrated(db: Database): Promise<void> {
  const known = migrations()
  const [found] = await select(db, `select to_regclass('outbox.migration')::text as name`)
  const rows = found?.name ? await installed(db) : []
  refuseForeign(rows, known)
  const missing = known.filter(
    ({ version }) => !rows.some((row) => Number(row.version) === version),
  )
  if (missing.length > 0) {
    throw new HermodError(
      'HMD_MIGRATION_NEEDED',
      `the schema lacks ${missing.map(({ name }) => name).join(', ')}`,
    )
  }
}

/** Before anything is changed. */
function refuseLanes(lanes: number | undefined): void {
  if (lanes === undefined || (Number.isInteger(lanes) && lanes >= 1 && lanes <= 256)) return
  throw new HermodError('HMD_OPTION_INVALID', 'lanes must be 1 to 256', { field: 'lanes' })
}

async function refuseServer(db: Database): Promise<void> {
  const [server] = await select(
    db,
    `select current_setting('server_version_num') as number, current_setting('server_version') as version,
            pg_is_in_recovery()::text as standby`,
  )
  if (Number(server?.number) < MIN_SERVER_VERSION) {
    throw new HermodError(
      'HMD_POSTGRES_TOO_OLD',
      `this server is PostgreSQL ${server?.version}, 14 is needed`,
    )
  }
  if (server?.standby === 'true') {
    throw new HermodError('HMD_STANDBY', 'this server is a standby; migrate the primary')
  }
}

/** The version row first: whoever comes second waits for the lock, then finds it. */
async function apply(
  db: Database,
  migration: Migration,
  known: readonly Migration[],
): Promise<boolean> {
  return transaction(db, async (client) => {
    await client.query(`set local lock_timeout = '60s'`)
    await client.query(`select pg_advisory_xact_lock(${LOCK})`)
    await client.query(`set local client_min_messages = warning`)
    await client.query('create schema if not exists outbox')
    await client.query(`create table if not exists outbox.migration (
      version integer primary key, name text not null, hash text not null, applied_at timestamptz not null default now())`)
    const rows = await installed(client)
    refuseForeign(rows, known)
    if (rows.some((row) => Number(row.version) === migration.version)) return false
    await select(client, 'insert into outbox.migration (version, name, hash) values ($1, $2, $3)', [
      migration.version,
      migration.name,
      migration.hash,
    ])
    await client.query(migration.sql)
    // New functions are executable by everybody until this.
    if (migration.version >= GRANTS_SINCE) await client.query('select outbox.apply_grants()')
    return true
  })
}

function installed(client: PoolClient | Database) {
  return select(client, 'select version::text, name, hash from outbox.migration order by version')
}

function refuseForeign(
  rows: Awaited<ReturnType<typeof installed>>,
  known: readonly Migration[],
): void {
  for (const row of rows) {
    const ours = known.find(({ version }) => version === Number(row.version))
    if (ours === undefined) {
      throw new HermodError(
        'HMD_MIGRATION_NEWER',
        `the schema has migration ${row.name}, which this library does not know`,
      )
    }
    if (ours.hash !== row.hash) {
      throw new HermodError(
        'HMD_MIGRATION_CHANGED',
        `migration ${row.name} was applied with another text`,
      )
    }
  }
}

/** Lanes are fixed at install: another number would move aggregates between lanes and break order. */
async function fixLanes(db: Database, lanes: number | undefined): Promise<void> {
  if (lanes === undefined) return
  const [changed] = await select(
    db,
    `update outbox.setting set lanes = $1 where lanes <> $1
        and not exists (select from outbox.step) and not exists (select from outbox.subscription) returning lanes`,
    [lanes],
  )
  if (changed === undefined) await assertLanes(db, lanes)
}

/** Refuses a number of lanes that is not the one of the install. */
export async function assertLanes(db: Database, lanes: number | undefined): Promise<void> {
  if (lanes === undefined) return
  const [row] = await select(db, 'select lanes::text from outbox.setting')
  if (Number(row?.lanes) === lanes) return
  throw new HermodError(
    'HMD_LANES_CHANGED',
    `lanes is ${row?.lanes} since the install and cannot become ${lanes}`,
  )
}
