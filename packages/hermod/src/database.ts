/**
 * How the engine talks to PostgreSQL: one statement, text in, text out. Our coded SQL errors become
 * HermodErrors; every other error passes unchanged.
 */
import { createHash } from 'node:crypto'
import { fromSqlState, HermodError } from './errors.ts'

/** What the engine needs of a `pg` pool or client. */
export interface Queryable {
  // biome-ignore lint/suspicious/noExplicitAny: the shape of `pg`, without importing it
  query(config: any): Promise<{ rows: any[]; rowCount: number | null }>
}

/** A client taken out of a pool. */
export interface PoolClient extends Queryable {
  release(destroy?: boolean | Error): void
  // biome-ignore lint/suspicious/noExplicitAny: `never[]` would refuse the client of @types/pg
  on(name: string, hear: (...args: any[]) => void): unknown
  // biome-ignore lint/suspicious/noExplicitAny: as above
  removeListener(name: string, hear: (...args: any[]) => void): unknown
}

export interface Database extends Queryable {
  connect(): Promise<PoolClient>
}

export type Param = string | number | boolean | null | bigint | readonly unknown[]
export type Row = Record<string, string | null>

/** 64-bit numbers, times and JSON stay text: nothing is rounded, nothing parsed twice. */
const AS_TEXT = { getTypeParser: () => (value: unknown) => value }

/** A time as a column of ISO text, whatever the session's DateStyle is. */
export function isoTime(time: string, name: string = time.replace(/^.*\./, '')): string {
  return `to_json(${time}) #>> '{}' as ${name}`
}

/** Rows as objects of text. */
export async function select(db: Queryable, text: string, values: readonly Param[] = []): Promise<Row[]> {
  return (await run(db, { text, values, types: AS_TEXT })).rows
}

/** Rows as arrays of text: for the statements that move many events. */
export async function selectArrays(
  db: Queryable,
  text: string,
  values: readonly Param[],
): Promise<(string | null)[][]> {
  return (await run(db, { text, values, types: AS_TEXT, rowMode: 'array' })).rows
}

// biome-ignore lint/suspicious/noExplicitAny: callers say what their statement returns
async function run(db: Queryable, config: object): Promise<{ rows: any[] }> {
  try {
    return await db.query(config)
  } catch (error) {
    throw fromSqlState(error)
  }
}

/** The same database, but statements with values are prepared by name: for few, fixed texts. */
export function preparing(db: Database): Database {
  return derived(db, {
    connect: () => db.connect(),
    query: (config: { text?: string; values?: unknown }) => {
      const { text, values } = config
      if (text === undefined || values === undefined) return db.query(config)
      return db.query({ ...config, name: nameOf(text) })
    },
  })
}

const sources = new WeakMap<Database, Database>()

/** Notes that both are the same database. */
export function derived(source: Database, db: Database): Database {
  sources.set(db, sourceOf(source))
  return db
}

/** What the caller gave us, behind all that we put around it. */
export function sourceOf(db: Database): Database {
  return sources.get(db) ?? db
}

const names = new Map<string, string>()

/** The same text has the same name on every connection, whoever prepared it. */
function nameOf(text: string): string {
  const known = names.get(text)
  if (known !== undefined) return known
  const name = `hermod_${createHash('sha256').update(text).digest('base64url').slice(0, 16)}`
  names.set(text, name)
  return name
}

/**
 * BEGIN, the work, COMMIT; ROLLBACK when it throws. `commit` sends COMMIT, and what travels with it. The work begins when
 * BEGIN was answered, also on a connection that pipelines: if BEGIN alone failed, because somebody cancelled an earlier
 * statement a moment too late, what follows would be committed statement by statement. A connection that broke is not
 * used again.
 */
export async function transaction<T>(
  db: Database,
  work: (client: PoolClient) => Promise<T>,
  commit: (client: PoolClient) => Promise<unknown> = (client) => client.query('commit'),
): Promise<T> {
  const client = await db.connect()
  let broken: Error | undefined
  const onError = (error: Error) => {
    broken = error
  }
  client.on('error', onError)
  try {
    await client.query('begin')
    const result = await work(client)
    assertCommitted(await commit(client))
    return result
  } catch (error) {
    await client.query('rollback').catch((cause: Error) => {
      broken ??= cause
    })
    throw fromSqlState(error)
  } finally {
    client.removeListener('error', onError)
    client.release(broken)
  }
}

/** COMMIT of a failed transaction answers ROLLBACK without raising an error. */
function assertCommitted(answer: unknown): void {
  const last: unknown = Array.isArray(answer) ? answer.at(-1) : answer
  if ((last as { command?: string }).command === 'ROLLBACK')
    throw new HermodError('HMD_ROLLED_BACK', 'the error of a statement was caught inside the work')
}

/** A text as a literal of a statement, right with every setting of `standard_conforming_strings`. */
export function literal(text: string | null): string {
  if (text === null) return 'null'
  if (text.includes('\0')) throw new TypeError('PostgreSQL cannot store U+0000')
  const quoted = text.replaceAll("'", "''")
  return quoted.includes('\\') ? ` E'${quoted.replaceAll('\\', '\\\\')}'` : `'${quoted}'`
}

/** Somebody else holds a lock, for longer than the statement waits. Nothing of it happened. */
export function isLockTimeout(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === '55P03'
}

/** SQLSTATE class 08 and 57P0x, and the driver's words for a connection that is gone. */
export function isConnectionError(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  if (typeof code === 'string' && /^(08|57P0|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_)/.test(code)) return true
  return /connection terminated|timeout expired|not queryable|client has encountered/i.test(String(message))
}

/**
 * Sends texts that came from outside. A database in another encoding than UTF8 may lack a character of them; then they
 * are sent again with a question mark for whatever is not ASCII, so that no destination can make a statement fail for ever.
 */
export async function sendText<T>(send: (fit?: (text: string) => string) => Promise<T>): Promise<T> {
  try {
    return await send()
  } catch (error) {
    if ((error as { code?: unknown }).code !== '22P05') throw error
    return send((text) => text.replace(/\P{ASCII}/gu, '?'))
  }
}
