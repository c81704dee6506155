/**
 * sequence: one step, which gives positions to what committed. Any number of workers may call it; one wins,
 * the others return at once.
 */
import { type Database, select, sourceOf } from '../database.ts'

/** Large enough that the fixed cost of a step does not matter. */
export const pieceRows = 10_000
/** The first piece of a backlog is small, so that delivery starts early. */
export const firstPieceRows = 2_000

const SEQUENCE = `select concat_ws(' ', numbered, head, more, new_epoch, coalesce(due_ms::text, '-'),
  array_to_string(lanes, ','), array_to_string(kinds, ',')) as step from outbox.sequence($1, $2)`

export interface Step {
  readonly numbered: number
  /** The highest position there is. */
  readonly head: bigint
  /** The window is not finished: call again. */
  readonly more: boolean
  /** The first step on a new timeline: positions moved up, all leases void. */
  readonly newEpoch: boolean
  /** Milliseconds until the next scheduled event is due; undefined: not soon. */
  readonly dueMs: number | undefined
  /** Which lanes and kinds it concerns; undefined: any. */
  readonly news: News | undefined
}

/** The lanes and kinds of the events of a step. */
export interface News {
  /** Everything above `from`, up to `to`. */
  readonly from: bigint
  readonly to: bigint
  readonly lanes: readonly number[]
  readonly kinds: readonly number[]
}

/**
 * The head this process has seen last. A database that ends below it went back in time, and would give
 * positions again that the outside has seen: the step is refused before it numbers anything.
 */
const heads = new WeakMap<Database, bigint>()

/** Undefined: another session is making a step. A statement of its own: `db` must not be inside a transaction. */
export async function sequence(db: Database, rows: number = pieceRows): Promise<Step | undefined> {
  const source = sourceOf(db)
  const [row] = await select(db, SEQUENCE, [rows, heads.get(source) ?? null])
  if (row === undefined) return undefined
  const step = stepOf(row.step as string)
  heads.set(source, step.head)
  return step
}

/** The text is: numbered head more new_epoch due_ms [lanes kinds]. */
export function stepOf(text: string): Step {
  const [numbered, head, more, newEpoch, dueMs, lanes, kinds] = text.split(' ')
  const to = BigInt(head ?? 0)
  const from = to - BigInt(numbered ?? 0)
  return {
    numbered: Number(numbered),
    head: to,
    more: more === 't',
    newEpoch: newEpoch === 't',
    dueMs: dueMs === '-' ? undefined : Number(dueMs),
    news: lanes ? { from, to, lanes: numbers(lanes), kinds: numbers(kinds ?? '') } : undefined,
  }
}

function numbers(list: string): number[] {
  return list.split(',').map(Number)
}

/** Refuses to start if steps would be refused: on a standby, or with a sequence that has a cache. */
export async function assertSequencer(db: Database): Promise<void> {
  await select(db, 'select outbox.assert_sequencer()')
}
