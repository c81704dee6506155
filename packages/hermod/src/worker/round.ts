/** One read of one lane on its way through a claim loop: what of it is sent, and what came of it. */

import { problemIn } from '../flow/deliver.ts'
import type { Trouble } from '../flow/hold.ts'
import type { ParkedLane } from '../flow/park.ts'
import type { LaneRead } from '../flow/read.ts'
import type { Entry } from '../flow/result.ts'
import { Result } from '../flow/result.ts'
import type { Settlement } from '../flow/settle.ts'
import type { ResolvedSubscription } from '../options.ts'
import { delivered, type Outcome, rejected } from '../sinks/sink.ts'
import type { LeasedLane } from './lane.ts'

export interface Batch {
  readonly lane: LeasedLane
  readonly from: bigint
  readonly read: LaneRead
  /** Read for a dry run. */
  readonly rehearsed?: boolean
}

/** One batch per lane, read together and delivered together. */
export interface Round {
  readonly batches: readonly Batch[]
  readonly entries: readonly Entry[]
  /** Outcomes that need no call. */
  readonly known: Result
  readonly rehearsed: boolean
  readonly startedMs: number
  /** The counts of a call that a former owner sent; its events are not known here. */
  readonly counts?: Pick<Settlement, 'sent' | 'delivered' | 'superseded'> | undefined
}

/** A lane's part of a parked call; undefined unless everything read from the lane depends on this call alone. */
export function partIn(call: ReadonlySet<Entry>, { lane, from, read }: Batch): ParkedLane | undefined {
  const covered = read.fresh.filter((entry) => call.has(entry)).length
  const whole = read.fresh.every((entry) => entry.mark === null && (call.has(entry) || isSuperseded(entry.outcome)))
  if (!whole || covered === 0 || read.due.length > 0) return undefined
  const { lane: number, fence } = lane
  const counts = { delivered: covered, superseded: read.fresh.length - covered }
  return { lane: number, fence, from, to: read.through, ...counts }
}

/** The entries of a batch that go to the sink; the others get their outcome here. */
export function toSend({ lane, read: { fresh, due } }: Batch, known: Result): Entry[] {
  const gone = rejected({ code: 'HMD_EVENT_GONE', message: 'the row of the event is gone' })
  const going = due.filter((entry) => !entry.gone)
  for (const entry of due) if (entry.gone) known.set(entry, gone)
  for (const entry of fresh) {
    if (entry.mark === 'blocked') known.set(entry, 'blocked')
    else if (lane.beyond.size > 0 && lane.beyond.has(entry.event.position)) known.set(entry, delivered())
    else if (entry.gone) known.set(entry, gone)
    else going.push(entry)
  }
  return going
}

/** Something was read, or skipped. */
export function hasNews(batch: Batch): boolean {
  return batch.read.fresh.length + batch.read.due.length > 0 || moved(batch)
}

export function isEmpty(list: readonly unknown[] | undefined): boolean {
  return list === undefined || list.length === 0
}

export function moved({ from, read: { through } }: Batch): boolean {
  return through > from
}

/** Exactly one event, for a probe: a retry that is due, else the next one. */
export function oneOf(batch: Batch): Batch | undefined {
  const [first] = toSend(batch, new Result())
  if (first === undefined) return undefined
  const { read } = batch
  if (first.mark === 'due') return { ...batch, read: { ...read, due: [first], fresh: [], through: batch.from } }
  const fresh = read.fresh.filter(({ event }) => event.position <= first.event.position)
  return { ...batch, read: { ...read, due: [], fresh, through: first.event.position } }
}

/** A dry run maps and checks, and sends nothing. */
export function rehearse({ sink }: ResolvedSubscription, entries: readonly Entry[]): Result {
  const result = new Result()
  for (const entry of entries) {
    const problem = problemIn(sink, entry)
    result.set(entry, problem === undefined ? delivered() : rejected({ message: problem }))
  }
  return result
}

function isSuperseded(outcome: Outcome | 'blocked' | undefined): boolean {
  return outcome !== undefined && outcome !== 'blocked' && outcome.outcome === 'superseded'
}

/** How many events were delivered. */
export function deliveredIn(result: Result): number {
  let count = 0
  for (const entry of result.entries) {
    const outcome = result.get(entry)
    if (outcome !== 'blocked' && outcome?.outcome === 'delivered') count++
  }
  return count
}

/** The worst sign that the destination as a whole cannot be used, if any. */
export function troubleIn(result: Result): Trouble | undefined {
  let worst: Outcome | undefined
  for (const entry of result.entries) {
    const outcome = result.get(entry)
    if (outcome !== undefined && outcome !== 'blocked') worst = worse(worst, outcome)
  }
  if (worst === undefined) return undefined
  const cause = worst.outcome as Trouble['cause']
  return { cause, says: worst.message ?? worst.code ?? cause, afterMs: worst.afterMs ?? 0 }
}

/** A wrong configuration is worse than being away; of two that are away, the one that asks for the longer pause. */
function worse(worst: Outcome | undefined, next: Outcome): Outcome | undefined {
  if (next.outcome === 'misconfigured') return next
  if (next.outcome !== 'unavailable' || worst?.outcome === 'misconfigured') return worst
  return (next.afterMs ?? 0) >= (worst?.afterMs ?? 0) ? next : worst
}
