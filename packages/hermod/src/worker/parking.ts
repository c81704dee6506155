/**
 * The parked rounds of one claim loop: their destination took the call as a task. The loop continues with
 * its other lanes; when the task has ended, the round is settled like any other.
 *
 *   send ──handle──▶ recorded on its lanes ──▶ polled ──▶ returned ──▶ settled
 *                          │                     ▲
 *                          └──owner is gone──▶ resumed by the next one
 */

import { park, parked } from '../flow/park.ts'
import type { Entry } from '../flow/result.ts'
import { Result } from '../flow/result.ts'
import { delivered, type Outcome } from '../sinks/sink.ts'
import { notify } from '../telemetry.ts'
import type { LeasedLane } from './lane.ts'
import { type Batch, partIn, type Round } from './round.ts'
import type { Station, Tasks, Waiting } from './station.ts'

export interface Returned {
  readonly round: Round
  readonly result: Result
}

export class Parking {
  readonly #station: Station
  readonly #poller: Tasks
  readonly #wake: () => void
  /** Rounds under way that may be parked, and the function that tells their loop so. */
  readonly #sent = new Map<Round, () => void>()
  readonly #out = new Map<Round, Waiting>()
  readonly #returned: Returned[] = []
  /** Rounds this loop no longer waits for: their recorded lanes stay as they are. */
  readonly #left = new WeakSet<Round>()

  constructor(station: Station, poller: Tasks, wake: () => void) {
    this.#station = station
    this.#poller = poller
    this.#wake = wake
  }

  /** Rounds that are parked, or ended and not taken yet. */
  get size(): number {
    return this.#out.size + this.#returned.length
  }

  /** The call of a parked round has ended. */
  get isBack(): boolean {
    return this.#returned.length > 0
  }

  /** Takes a round whose call has ended: its lanes are free again, except those left to their next owner. */
  next(): Returned | undefined {
    const back = this.#returned.shift()
    if (back === undefined) return undefined
    const left = this.#left.has(back.round)
    for (const { lane } of back.round.batches) if (!left || lane.parked === 'waiting') lane.parked = undefined
    return back
  }

  /** The result of a round; undefined: it is parked, and `next` returns it later. */
  async follow(round: Round, sent: Promise<Result>): Promise<Result | undefined> {
    const away = new Promise<undefined>((resolve) => {
      this.#sent.set(round, () => resolve(undefined))
    })
    const result = await Promise.race([sent, away]).finally(() => this.#sent.delete(round))
    if (result === undefined) this.#await(round, sent)
    return result
  }

  #await(round: Round, sent: Promise<Result>): void {
    sent
      .catch((error) => {
        this.#tell(error)
        return new Result()
      })
      .then((result) => this.#back(round, result))
  }

  /** Parks a call of this round: records the handle, lets the loop continue, waits for the end. */
  async park(round: Round, handle: string, entries: readonly Entry[]): Promise<Outcome | undefined> {
    const call = new Set(entries)
    for (const { lane, read } of round.batches) {
      // A part whose call has ended keeps its record until the whole round has ended.
      const inCall = [...read.fresh, ...read.due].some((entry) => call.has(entry))
      if (inCall || lane.parked === undefined) lane.parked = 'waiting'
    }
    await this.#record(round, handle, call).catch((error) => this.#tell(error))
    const waiting = this.#poller.wait(handle)
    this.#out.set(round, waiting)
    this.#sent.get(round)?.()
    const outcome = await waiting.ended
    if (outcome === undefined) this.#left.add(round)
    return outcome
  }

  /** If a lane's part is not recorded, it is sent again after a crash. */
  async #record(round: Round, handle: string, call: ReadonlySet<Entry>): Promise<void> {
    const { db, subscription, owner } = this.#station
    const parts = round.batches.flatMap((batch) => {
      const part = partIn(call, batch)
      return part === undefined ? [] : [{ lane: batch.lane, part }]
    })
    const lanes = parts.map(({ part }) => part)
    const recorded = await park(db, subscription.name, owner, handle, lanes)
    for (const { lane } of parts) if (recorded.has(lane.lane)) lane.parked = 'recorded'
  }

  /** For newly claimed lanes: waits for what their former owner had parked, instead of sending it again. */
  async resume(lanes: readonly LeasedLane[]): Promise<void> {
    const fresh = lanes.filter((lane) => !lane.asked)
    if (fresh.length === 0) return
    const { db, subscription } = this.#station
    const numbers = fresh.map(({ lane }) => lane)
    const found = await parked(db, subscription.name, numbers)
    for (const lane of fresh) lane.asked = true
    for (const one of found) {
      const lane = fresh.find(({ lane: number }) => number === one.lane) as LeasedLane
      const { handle, from, to, ageMs, delivered: count, superseded } = one
      const read = { lane: one.lane, through: to, fresh: [], due: [], more: false }
      const counts = { sent: count + superseded, delivered: count, superseded }
      this.#resume(lane, handle, { lane, from, read }, counts, performance.now() - ageMs)
    }
  }

  #resume(
    lane: LeasedLane,
    handle: string,
    batch: Batch,
    counts: NonNullable<Round['counts']>,
    startedMs: number,
  ): void {
    lane.parked = 'recorded'
    const base = { entries: [], known: new Result(), rehearsed: false, startedMs }
    const round = { ...base, batches: [batch], counts }
    const waiting = this.#poller.wait(handle)
    this.#out.set(round, waiting)
    waiting.ended.then((outcome) => {
      if (outcome === undefined) this.#left.add(round)
      const ended = outcome?.outcome === delivered().outcome || outcome?.outcome === 'superseded'
      // Anything else: the range is read and sent again, so that it can be halved.
      const nothing = { ...batch, read: { ...batch.read, through: batch.from } }
      if (!ended) Object.assign(round, { batches: [nothing], counts: undefined })
      this.#back(round, new Result())
    })
  }

  #back(round: Round, result: Result): void {
    if (!this.#out.delete(round)) return
    this.#returned.push({ round, result })
    this.#wake()
  }

  /** Stops waiting for rounds none of whose lanes is still leased. */
  sweep(leased: readonly LeasedLane[]): void {
    for (const [round, waiting] of this.#out) {
      if (round.batches.some(({ lane }) => leased.includes(lane))) continue
      this.#out.delete(round)
      waiting.forget()
    }
  }

  #tell(error: unknown): void {
    const { listener, subscription } = this.#station
    notify(listener, 'error', { during: 'park', error, subscription: subscription.name })
  }
}
