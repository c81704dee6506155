/** The database of a command: --url, else DATABASE_URL. Passwords never reach a message. */
import { type Database, isConnectionError } from '../database.ts'
import { HermodError } from '../errors.ts'
import { type Context, textOf } from './command.ts'

export interface Connected extends Database {
  end(): Promise<void>
}

/** Opens, works, closes; a database that does not answer is named with its password masked. */
export async function withDatabase<T>(context: Context, work: (db: Connected) => Promise<T>): Promise<T> {
  const url = databaseUrl(context)
  const db = await open(url)
  try {
    await db.query('select 1').catch((error: unknown) => {
      throw unreachable(url, error)
    })
    return await work(db)
  } catch (error) {
    throw isConnectionError(error) ? unreachable(url, error) : error
  } finally {
    await db.end().catch(() => {})
  }
}

export function databaseUrl(context: Context): string {
  const url = textOf(context, 'url') ?? context.env.DATABASE_URL
  if (url !== undefined && url !== '' && !/^postgres(ql)?:\/\/|^\/|=/.test(url))
    throw new HermodError('HMD_DATABASE_UNREACHABLE', `${maskUrl(url)} is not the address of a PostgreSQL database`, {
      fix: 'Write it as postgres://user:password@host:5432/database.',
    })
  if (url !== undefined && url !== '') return url
  throw new HermodError('HMD_DATABASE_MISSING', 'DATABASE_URL is not set and --url was not given', {
    fix: 'Set DATABASE_URL=postgres://user:password@host:5432/database, or give --url.',
  })
}

async function open(url: string): Promise<Connected> {
  const pg = await loadPg()
  try {
    const config = { connectionString: url, application_name: 'hermod', max: 4, keepAlive: true }
    const pool = new pg.Pool({ ...config, connectionTimeoutMillis: 10_000 })
    // A connection that breaks while idle must not end the process; the next query says so.
    pool.on('error', () => {})
    return pool as unknown as Connected
  } catch (error) {
    throw unreachable(url, error)
  }
}

async function loadPg(): Promise<typeof import('pg')['default']> {
  try {
    return (await import('pg')).default
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new HermodError('HMD_DATABASE_UNREACHABLE', 'the package pg is not installed here', {
      fix: 'Run npm install pg beside hermod.',
    })
  }
}

function unreachable(url: string, error: unknown): HermodError {
  if (error instanceof HermodError) return error
  const { message, code } = (error ?? {}) as { message?: string; code?: string }
  const why = (message || code || String(error)).replaceAll(url, maskUrl(url))
  return new HermodError('HMD_DATABASE_UNREACHABLE', `${maskUrl(url)}: ${why}`)
}

/** `postgres://ada:***@host/db`. Masks the password even if the text is not a valid URL. */
export function maskUrl(url: string): string {
  return url
    .replace(/^([a-z+]*:?\/\/[^:@/?#]*):.*@/i, '$1:***@')
    .replace(/(password|pass|pwd|sslpassword)=[^&\s]*/gi, '$1=***')
}
