/**
 * What a claim loop has delivered and not settled yet: one batch at a time is written beside the next
 * delivery, or kept for the next read, which takes it along in one statement. While small batches
 * follow each other closely, those that simply passed are kept for a few of them and settled as one.
 */
import { isConnectionError } from '../database.ts'
import { type SettledBatch, type Settlement, settle } from '../flow/settle.ts'
import { notify } from '../telemetry.ts'
import type { Round } from './batch.ts'
import { tellRetries } from './report.ts'
import { pause, settleApart, type WriteLanes } from './set-aside.ts'
import type { Station } from './station.ts'

/** So long may what passed wait for another round, and less than a batch of it: a crash repeats no more than before. */
const keptMs = 20
/** A larger batch is not kept at all. */
export const keptMax = 500
/** A batch that cannot be settled is sent again, but not at once. */
const refusedPauseMs = 2_000

/** A delivered batch, as the database shall know it. */
export interface Unsettled {
  readonly round: Round
  readonly lanes: readonly Settlement[]
  readonly endedMs: number
}

export class Settling {
  readonly #station: Station
  #writing: Promise<void> = Promise.resolve()
  #kept: Unsettled | undefined
  /** An answer was lost or a settle refused: nothing may be assumed. */
  doubt = false

  constructor(station: Station) {
    this.#station = station
  }

  /** Something waits for the next read. */
  get waits(): boolean {
    return this.#kept !== undefined
  }

  /** Everything delivered so far is settled. */
  async all(): Promise<void> {
    const kept = this.take()
    if (kept !== undefined) this.#writing = this.#write(kept)
    await this.#writing
  }

  /** What is being written is. */
  async written(): Promise<void> {
    await this.#writing
  }

  /** Kept for the next read, or written at once, beside the next delivery; together with what was kept, before it. */
  async add({ round, lanes, endedMs }: Unsettled, keep: boolean): Promise<void> {
    const held = new Map(round.batches.map(({ lane }) => [lane.lane, lane]))
    const changes = lanes.filter(isChange)
    for (const one of lanes) if (!isChange(one)) held.get(one.lane)?.settled(one.to, one.beyond)
    if (changes.length === 0) return
    const kept = this.take()
    const unsettled = following(kept, { round, lanes: changes, endedMs })
    if (keep) this.keep(unsettled)
    else this.#writing = this.#write(unsettled)
    if (kept !== undefined) await this.#writing
  }

  /** For the next read. */
  keep(unsettled: Unsettled | undefined): void {
    this.#kept = unsettled
  }

  /** What cannot wait for another round. */
  takeDue(): Unsettled | undefined {
    const { round, lanes = [] } = this.#kept ?? {}
    const young = round !== undefined && performance.now() - round.startedMs < keptMs
    const sent = lanes.reduce((sum, lane) => sum + lane.sent, 0)
    const few = sent < Math.min(keptMax, this.#station.subscription.batch.count)
    return young && few && lanes.every(isPlain) ? undefined : this.take()
  }

  take(): Unsettled | undefined {
    const kept = this.#kept
    this.#kept = undefined
    return kept
  }

  /** The database's answer: a lane that is missing was taken over, or its cursor is elsewhere. */
  landed({ round, lanes }: Unsettled, settled: ReadonlySet<number>): void {
    const held = new Map(round.batches.map(({ lane }) => [lane.lane, lane]))
    for (const one of lanes) {
      if (!settled.has(one.lane)) this.doubt = true
      else held.get(one.lane)?.settled(one.to, one.beyond)
      if (settled.has(one.lane)) tellRetries(this.#station, one)
    }
  }

  /** Not settled. What is refused is written again in parts; after a lost connection nothing is assumed. */
  async failed(unsettled: Unsettled, error: unknown): Promise<void> {
    if (isConnectionError(error)) return this.#lost(error)
    const { subscription, owner, workerName, abort } = this.#station
    const { call } = batchOf(unsettled, workerName)
    const write: WriteLanes = (db, lanes) => settle(db, subscription, owner, { lanes, call })
    this.#tell(error)
    try {
      const { settled, refused } = await settleApart(this.#station, unsettled.lanes, error, write)
      this.landed({ ...unsettled, lanes: unsettled.lanes.filter(({ lane }) => !refused.has(lane)) }, settled)
      for (const why of refused.values()) this.#lost(why)
      if (refused.size > 0) await pause(refusedPauseMs, abort)
    } catch (again) {
      this.#lost(again)
    }
  }

  /** No answer. Its COMMIT may have happened: the lanes are read again, never assumed. */
  #lost(error: unknown): void {
    this.doubt = true
    this.#tell(error)
  }

  #tell(error: unknown): void {
    const { listener, subscription } = this.#station
    notify(listener, 'error', { during: 'settle', error, subscription: subscription.name })
  }

  async #write(unsettled: Unsettled): Promise<void> {
    const { db, subscription, owner, workerName } = this.#station
    try {
      this.landed(unsettled, await settle(db, subscription, owner, batchOf(unsettled, workerName)))
    } catch (error) {
      await this.failed(unsettled, error)
    }
  }
}

/** Two batches, one after the other, as if they had been one. */
function following(before: Unsettled | undefined, next: Unsettled): Unsettled {
  if (before === undefined) return next
  const lanes = new Map(before.lanes.map((one) => [one.lane, one]))
  for (const one of next.lanes) {
    const known = lanes.get(one.lane)
    lanes.set(one.lane, known === undefined ? one : joined(known, one))
  }
  const batches = [...before.round.batches, ...next.round.batches]
  const round = { ...next.round, batches, startedMs: before.round.startedMs }
  return { round, lanes: [...lanes.values()], endedMs: next.endedMs }
}

function joined(before: Settlement, next: Settlement): Settlement {
  return {
    ...next,
    from: before.from,
    sent: before.sent + next.sent,
    delivered: before.delivered + next.delivered,
    superseded: before.superseded + next.superseded,
  }
}

/** It passed, and nothing else is to be said. */
function isPlain({ failed, rows, held, done, beyond }: Settlement): boolean {
  return failed + rows.length + held.length + done.length + beyond.length === 0
}

function isChange({ from, to, rows, held, done }: Settlement): boolean {
  return to > from || rows.length + done.length + held.length > 0
}

/** What the statement is given. */
export function batchOf({ round, lanes, endedMs }: Unsettled, worker: string): SettledBatch {
  const { startedMs, rehearsed } = round
  const [startedAgoMs, durationMs] = [performance.now() - startedMs, endedMs - startedMs]
  return { lanes, call: { startedAgoMs, durationMs, worker, rehearsed } }
}
