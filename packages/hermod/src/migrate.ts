/**
 * Brings the schema `outbox` up to date: tables by numbered migrations, functions by routines, and fixes
 * the number of lanes. PostgreSQL 14 and a primary are needed.
 */
import { type Database, select } from './database.ts'
import { HermodError } from './errors.ts'
import { applyMigrations, assertApplied, type Migration, type NumberedSql, readMigrations } from './numbered-sql.ts'
import { applyGrants, applyRoutines, assertRoutines, installedRoutines } from './routines.ts'
import { version } from './version.ts'

export type { Migration } from './numbered-sql.ts'

const FOLDER = new URL('../migrations/', import.meta.url)
const MIN_SERVER_VERSION = 140_000

const OURS: NumberedSql = {
  folder: FOLDER,
  schema: 'outbox',
  lock: 4841297200,
  after: async (client, applied) => {
    if (await applyRoutines(client)) return ['routines']
    if (applied.length > 0) await applyGrants(client)
    return []
  },
}

export interface MigrateOptions {
  /** 1 to 256, fixed by the first migration; 16 when left out. */
  readonly lanes?: number | undefined
}

export interface MigrateResult {
  /** Names of migrations, and `routines`. */
  readonly applied: readonly string[]
  readonly version: number
  /** Version of the library whose routines are installed; those of a newer one are left as they are. */
  readonly routines: string
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
  const routines = (await installedRoutines(db))?.version ?? version
  return { applied, version: migrations().at(-1)?.version ?? 0, routines }
}

/** Refuses a schema that is older or newer than this library, without changing anything. Newer routines are accepted. */
export async function assertMigrated(db: Database): Promise<void> {
  await assertApplied(db, OURS)
  await assertRoutines(db)
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
