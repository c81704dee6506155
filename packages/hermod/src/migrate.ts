/**
 * Brings the schema `outbox` up to date, and fixes the number of lanes. PostgreSQL 14 and a primary
 * are needed.
 */
import { type Database, select } from './database.ts'
import { HermodError } from './errors.ts'
import { applyMigrations, assertApplied, type Migration, type NumberedSql, readMigrations } from './numbered-sql.ts'

export type { Migration } from './numbered-sql.ts'

const FOLDER = new URL('../migrations/', import.meta.url)
const MIN_SERVER_VERSION = 140_000
const GRANTS_SINCE = 8

const OURS: NumberedSql = {
  folder: FOLDER,
  schema: 'outbox',
  lock: 4841297200,
  // New functions are executable by everybody until this.
  after: async (client, { version }) => {
    if (version >= GRANTS_SINCE) await client.query('select outbox.apply_grants()')
  },
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
  return readMigrations(FOLDER)
}

export async function migrate(db: Database, options: MigrateOptions = {}): Promise<MigrateResult> {
  refuseLanes(options.lanes)
  await refuseServer(db)
  const applied = await applyMigrations(db, OURS)
  await fixLanes(db, options.lanes)
  return { applied, version: migrations().at(-1)?.version ?? 0 }
}

/** Refuses a schema that is older or newer than this library, without changing anything. */
export function assertMigrated(db: Database): Promise<void> {
  return assertApplied(db, OURS)
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
    throw new HermodError('HMD_POSTGRES_TOO_OLD', `this server is PostgreSQL ${server?.version}, 14 is needed`)
  }
  if (server?.standby === 'true') {
    throw new HermodError('HMD_STANDBY', 'this server is a standby; migrate the primary')
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
  throw new HermodError('HMD_LANES_CHANGED', `lanes is ${row?.lanes} since the install and cannot become ${lanes}`)
}
