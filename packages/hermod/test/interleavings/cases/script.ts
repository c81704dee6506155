// The words the scripted cases are written in: emit, step, what is in the log, who waits.

import type { Asks } from '../../../../../test/support/invariants.ts'
import type { Running, Session } from '../../../../../test/support/session.ts'

/** Emits one event of the aggregate `doc/<id>`; `v` is the true order of changes, where it matters. */
export async function emit(tx: Session, id: string, v = 1): Promise<number> {
  const [row] = await tx.run(`select outbox.emit('doc.updated', 'doc', $1, $2) as id`, [id, JSON.stringify({ id, v })])
  return Number(row?.id)
}

/** BEGIN, one event, COMMIT. */
export async function emitAlone(tx: Session, id: string, v = 1): Promise<number> {
  await tx.begin()
  const eventId = await emit(tx, id, v)
  await tx.commit()
  return eventId
}

export const STEP = 'select numbered, head::int, more, new_epoch from outbox.sequence()'

/** How many events the step numbered; undefined when another session was at it. */
export async function step(on: Asks | Session): Promise<number | undefined> {
  const [row] = await ask(on, STEP)
  return row?.numbered as number | undefined
}

/** Aggregate ids in order of position. */
export async function logged(on: Asks | Session): Promise<string[]> {
  const rows = await ask(
    on,
    `select e.aggregate_id as id from outbox.log l join outbox.event e on e.id = l.event_id order by l.pos`,
  )
  return rows.map(({ id }) => String(id))
}

export async function positions(on: Asks | Session): Promise<number[]> {
  const rows = await ask(on, 'select pos::int from outbox.log order by pos')
  return rows.map(({ pos }) => Number(pos))
}

/** The first column of the first row. */
export async function value<T>(on: Asks | Session, sql: string, params: unknown[] = []): Promise<T> {
  const [row] = await ask(on, sql, params)
  return Object.values(row ?? {})[0] as T
}

/** What the statement returns; fails at once when it waits for a lock instead. */
export async function endsUnblocked<T>(running: Running<T>, what: string): Promise<T> {
  const waits = running.blocked().then(
    () => Promise.reject(new Error(`${what}: waits for a lock`)),
    () => running.promise,
  )
  return Promise.race([running.promise, waits])
}

/** Waits until the statement has ended or waits for a lock, whichever it does. */
export async function comesToRest(running: Running<unknown>): Promise<void> {
  await Promise.race([running.promise.catch(() => {}), running.blocked().catch(() => {})])
}

/** SQLSTATE of a failure; undefined when it went well. */
export async function sqlState(promise: Promise<unknown>): Promise<string | undefined> {
  return promise.then(
    () => undefined,
    (error: { code?: string }) => error.code,
  )
}

/** Pages read by one statement, found in memory or not. */
export async function buffersOf(session: Session, sql: string): Promise<number> {
  const plans = await value<{ Plan: Record<string, number> }[]>(
    session,
    `explain (analyze, buffers, format json) ${sql}`,
  )
  const { 'Shared Hit Blocks': hit = 0, 'Shared Read Blocks': read = 0 } = plans[0]?.Plan ?? {}
  return hit + read
}

async function ask(on: Asks | Session, sql: string, params: unknown[] = []) {
  return 'run' in on ? on.run(sql, params) : on.query(sql, params)
}
