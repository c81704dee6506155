/**
 * sequence: one step of turning commits into a numbered log. Any number of workers may call it; one
 * wins, the others return at once.
 */
import { type Database, select } from '../database.ts'

/** Long enough that a step's fixed cost does not matter. */
export const pieceRows = 10_000
/** The first piece of a backlog: delivery starts early. */
export const firstPieceRows = 2_000

const SEQUENCE = `select concat_ws(' ', numbered, head, more, new_epoch, array_to_string(lanes, ','),
  array_to_string(kinds, ',')) as step from outbox.sequence($1)`

export interface Step {
  readonly numbered: number
  /** The highest position there is. */
  readonly head: bigint
  /** The window is not finished: call again. */
  readonly more: boolean
  /** The first step on a new timeline: positions moved up, all leases void. */
  readonly newEpoch: boolean
  /** Whom it concerns; undefined: it may be anybody. */
  readonly news: News | undefined
}

/** Where the events of a step are, and what they are. */
export interface News {
  /** Everything above `from`, up to `to`. */
  readonly from: bigint
  readonly to: bigint
  readonly lanes: readonly number[]
  readonly kinds: readonly number[]
}

/** Undefined: another session is at it. */
export async function sequence(db: Database, rows: number = pieceRows): Promise<Step | undefined> {
  const [row] = await select(db, SEQUENCE, [rows])
  return row === undefined ? undefined : stepOf(row.step as string)
}

/** As outbox.turn writes it, too: numbered head more new_epoch [lanes kinds]. */
export function stepOf(text: string): Step {
  const [numbered, head, more, newEpoch, lanes, kinds] = text.split(' ')
  const to = BigInt(head ?? 0)
  const from = to - BigInt(numbered ?? 0)
  return {
    numbered: Number(numbered),
    head: to,
    more: more === 't',
    newEpoch: newEpoch === 't',
    news: lanes ? { from, to, lanes: numbers(lanes), kinds: numbers(kinds ?? '') } : undefined,
  }
}

function numbers(list: string): number[] {
  return list.split(',').map(Number)
}

/** Refuses to start where steps would be refused: a standby, a sequence with a cache. */
export async function assertSequencer(db: Database): Promise<void> {
  await select(db, 'select outbox.assert_sequencer()')
}
