/**
 * turn: number what committed, settle what was delivered, read what comes next, in one statement and
 * one transaction. Where there is little to do, statements and commits cost more than the events.
 */
import { type Database, selectArrays } from '../database.ts'
import { type LaneRead, type Reader, readOf, readValues } from './claim.ts'
import { type Step, stepOf } from './sequence.ts'
import { batchText, type SettledBatch } from './settle.ts'

const TURN = `select lane, due, through, heads, payloads, kind_max, part
  from outbox.turn($10, $11, $12::json, $1, $2, $3::smallint[], $4::bigint[], $5, $6, $7, $8, $9::boolean[], $13::bigint)`

export interface Along {
  /** Rows of a step to take along. */
  readonly step: number | undefined
  readonly batch: SettledBatch | undefined
}

/** `known`: the reader's lanes were read up to this head. What a small step numbers after it needs no read. */
export interface Known {
  readonly known: bigint | undefined
}

export interface Turned {
  /** Undefined: none was asked for, or another session is at it. */
  readonly step: Step | undefined
  readonly settled: ReadonlySet<number>
  /** Undefined: the subscription is paused, held or has a newer revision. */
  readonly reads: LaneRead[] | undefined
}

export async function turn(
  db: Database,
  owner: string,
  { step, batch, known }: Along & Known,
  reader: Reader,
): Promise<Turned> {
  const along = [step ?? null, owner, batch === undefined ? null : batchText(batch), known ?? null]
  const rows = await selectArrays(db, TURN, [...readValues(reader), ...along])
  const part = (name: string) => rows.filter((row) => row[6] === name)
  const [stepped] = part('step')
  return {
    step: stepped && stepOf(stepped[3] as string),
    settled: new Set(part('settled').map(([lane]) => Number(lane))),
    reads: await readOf(db, part('read'), reader),
  }
}
