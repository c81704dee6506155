/**
 * How the PostgreSQL engine talks to its database: statements on one connection that ends promptly
 * when the caller's signal is aborted. What was under way then is cancelled on the server too.
 */
import { type Database, isConnectionError, type PoolClient, type Row } from '../../../database.ts'

/** What the statements of this engine need. */
export interface Session {
  rows(text: string, values?: readonly unknown[]): Promise<Row[]>
}

/** 64-bit numbers, times and JSON stay text. */
const AS_TEXT = { getTypeParser: () => (value: unknown) => value }

export async function withSession<T>(
  db: Database,
  signal: AbortSignal | undefined,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted()
  const taken = db.connect()
  const client = await orAborted(taken, signal).catch((error) => {
    taken.then((late) => late.release()).catch(() => {})
    throw error
  })
  let broken: Error | undefined
  const onError = (error: Error) => {
    broken = error
  }
  client.on('error', onError)
  try {
    return await orAborted(work(sessionOn(client)), signal)
  } catch (error) {
    if (signal?.aborted) cancel(db, client)
    if (signal?.aborted || isConnectionError(error)) broken ??= error as Error
    throw error
  } finally {
    client.removeListener('error', onError)
    // A destroyed client may still report its end.
    if (broken !== undefined) client.on('error', () => {})
    client.release(broken)
  }
}

/** BEGIN, the work, COMMIT on one connection; the connection is given up when it throws. */
export async function inTransaction<T>(session: Session, work: (session: Session) => Promise<T>): Promise<T> {
  await session.rows('begin')
  try {
    const result = await work(session)
    await session.rows('commit')
    return result
  } catch (error) {
    await session.rows('rollback').catch(() => {})
    throw error
  }
}

function sessionOn(client: PoolClient): Session {
  return {
    async rows(text, values = []) {
      return (await client.query({ text, values, types: AS_TEXT })).rows ?? []
    },
  }
}

function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

/** Best effort: a statement nobody waits for any more should not go on for minutes. */
function cancel(db: Database, client: PoolClient): void {
  const { processID } = client as { processID?: number | null }
  if (typeof processID !== 'number') return
  db.query({ text: 'select pg_cancel_backend($1)', values: [processID] }).catch(() => {})
}
