/**
 * doctor: looks at everything an operator can get wrong, without starting anything, and says what
 * to do. A check without the needed privileges, or on a standby, says so and does not fail.
 */
import { type Database, select } from '../database.ts'
import { HermodError } from '../errors.ts'
import { assertMigrated } from '../migrate.ts'
import { bad, type Check, type DoctorOptions, type Examination, type Finding, well } from './doctor-finding.ts'
import { logChecks } from './doctor-log.ts'
import { serverChecks } from './doctor-server.ts'

export type { Check, DoctorOptions, Level } from './doctor-finding.ts'

export interface DoctorResult {
  /** Nothing failed; there may be warnings. */
  readonly ok: boolean
  readonly checks: readonly Check[]
}

const MIN_SERVER_VERSION = 140_000

/** Each must pass before the next makes sense. */
const entrance: readonly Examination[] = [
  { name: 'postgres', look: postgres },
  { name: 'primary', look: primary },
  { name: 'migrations', look: migrated },
]

export async function doctor(db: Database, options: DoctorOptions = {}): Promise<DoctorResult> {
  const checks: Check[] = []
  for (const examination of entrance) {
    const check = await examine(examination, db, options)
    checks.push(check)
    if (check.level === 'fail') return { ok: false, checks }
  }
  for (const examination of [...serverChecks, ...logChecks]) {
    checks.push(await examine(examination, db, options))
  }
  return { ok: checks.every(({ level }) => level !== 'fail'), checks }
}

async function examine({ name, look }: Examination, db: Database, options: DoctorOptions): Promise<Check> {
  const { level, says, fix } = await look(db, options).catch(unseen)
  return { name, ok: level === 'ok', level, says, ...(fix !== undefined && { fix }) }
}

function unseen(error: unknown): Finding {
  const message = error instanceof Error ? error.message : String(error)
  const refused = (error as { code?: unknown }).code === '42501'
  return { level: 'warn', says: `could not be checked: ${message}`, fix: refused ? adviceFor(message) : undefined }
}

/** Hosted services refuse functions of the server, whoever asks. */
function adviceFor(message: string): string {
  const [name] = /\bpg_\w+/.exec(message) ?? []
  if (name === undefined) return 'Run doctor as the owner or with the admin role.'
  return `Have execute granted on ${name} if your service allows it; only this check needs it.`
}

async function postgres(db: Database): Promise<Finding> {
  const [row] = await select(
    db,
    `select current_setting('server_version_num') as number, current_setting('server_version') as version`,
  )
  return Number(row?.number) >= MIN_SERVER_VERSION
    ? well(`PostgreSQL ${row?.version}`)
    : bad(`PostgreSQL ${row?.version} is too old`, 'Use PostgreSQL 14 or newer.')
}

async function primary(db: Database): Promise<Finding> {
  const [row] = await select(db, 'select pg_is_in_recovery()::text as standby')
  return row?.standby === 'true'
    ? bad('this server is a standby', 'Point DATABASE_URL at the primary (target_session_attrs=read-write).')
    : well('this server is the primary')
}

async function migrated(db: Database): Promise<Finding> {
  try {
    await assertMigrated(db)
    return well('the schema is the one this version needs')
  } catch (error) {
    if (!(error instanceof HermodError)) throw error
    return bad(`${error.code}: ${error.message}`, error.fix)
  }
}
