/**
 * What a claim loop has delivered and not settled yet: one batch at a time is written beside the next
 * delivery, or kept for the next read, which takes it along in one statement.
 */
import { type SettledBatch, type Settlement, settle } from '../flow/settle.ts'
import { notify } from '../telemetry.ts'
import type { Round } from './batch.ts'
import { tellRetries } from './report.ts'
import type { Station } from './station.ts'

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

  /** Kept for the next read, or written at once, beside the next delivery. */
  add({ round, lanes, endedMs }: Unsettled, keep: boolean): void {
    const held = new Map(round.batches.map(({ lane }) => [lane.lane, lane]))
    const changes = lanes.filter(isChange)
    for (const one of lanes) if (!isChange(one)) held.get(one.lane)?.settled(one.to, one.beyond)
    if (changes.length === 0) return
    const unsettled = { round, lanes: changes, endedMs }
    if (keep) this.#kept = unsettled
    else this.#writing = this.#write(unsettled)
  }

  /** For the next read again. */
  keep(unsettled: Unsettled | undefined): void {
    this.#kept = unsettled
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

  /** No answer. Its COMMIT may have happened: the lanes are read again, never assumed. */
  lost(error: unknown): void {
    const { listener, subscription } = this.#station
    this.doubt = true
    notify(listener, 'error', { during: 'settle', error, subscription: subscription.name })
  }

  async #write(unsettled: Unsettled): Promise<void> {
    const { db, subscription, owner, workerName } = this.#station
    try {
      this.landed(unsettled, await settle(db, subscription, owner, batchOf(unsettled, workerName)))
    } catch (error) {
      this.lost(error)
    }
  }
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
