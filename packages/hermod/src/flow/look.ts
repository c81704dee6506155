/** look: what waits for a worker, asked once on behalf of all its idle subscriptions. */
import { type Database, select } from '../database.ts'
import { arrayLiteral } from './emit.ts'

const LOOK = `select head::text, upto::text, array_to_string(kinds, ',') as kinds, to_json(waiting)::text as waiting,
  to_json(clear)::text as clear from outbox.look($1, $2, $3::text[], $4::bigint[])`
const PASS = 'select outbox.pass_idle($1, $2)'

/** Rows of the log that one look reads. */
const lookRows = 10_000
/** Positions that cursors of idle subscriptions are moved across at once. */
const passRows = 100_000

export interface Suspect {
  readonly name: string
  /** Something it listens to was numbered up to here; undefined: it is asked about all there is. */
  readonly heard: bigint | undefined
}

export interface Looked {
  readonly head: bigint
  /** Kinds are told up to here. */
  readonly upto: bigint
  readonly kinds: readonly number[]
  /** Have work that could be claimed, served here or not. */
  readonly waiting: readonly string[]
  /** Suspects that have nothing left. */
  readonly clear: readonly string[]
}

/** `known`: kinds up to here were told; undefined: none are asked for. */
export async function look(db: Database, known: bigint | undefined, suspects: readonly Suspect[]): Promise<Looked> {
  const names = arrayLiteral(suspects.map(({ name }) => name))
  const heard = arrayLiteral(suspects.map((suspect) => (suspect.heard === undefined ? null : String(suspect.heard))))
  const [row] = await select(db, LOOK, [known === undefined ? null : String(known), lookRows, names, heard])
  return {
    head: BigInt(row?.head ?? 0),
    upto: BigInt(row?.upto ?? 0),
    kinds: row?.kinds ? row.kinds.split(',').map(Number) : [],
    waiting: JSON.parse(row?.waiting ?? '[]') ?? [],
    clear: JSON.parse(row?.clear ?? '[]') ?? [],
  }
}

/** Moves cursors of idle lanes past what they do not listen to, unless somebody did within `everyMs`. */
export async function passIdle(db: Database, everyMs: number): Promise<void> {
  await select(db, PASS, [everyMs, passRows])
}
