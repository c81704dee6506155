/** How a claim loop calls its sink: with deadlines within the leases, and only for lanes that are still leased. */
import { HermodError } from '../errors.ts'
import type { CallOptions } from '../flow/call.ts'
import { deliver } from '../flow/deliver.ts'
import { sending } from '../flow/ledger.ts'
import type { Entry } from '../flow/result.ts'
import { Result } from '../flow/result.ts'
import type { LeasedLane } from './lane.ts'
import type { Leases } from './leases.ts'
import type { Parking } from './parking.ts'
import { tellCall } from './report.ts'
import { type Round, rehearse } from './round.ts'
import type { Station } from './station.ts'

/** A call must end this long before its lease. */
const marginMs = 200

export class Sending {
  readonly #station: Station
  readonly #leases: Leases
  readonly #parking: Parking | undefined
  #stopped = false
  /** When something live was last sent. */
  liveAtMs = Number.NEGATIVE_INFINITY

  constructor(station: Station, leases: Leases, parking: Parking | undefined) {
    this.#station = station
    this.#leases = leases
    this.#parking = parking
  }

  /** No further call may begin. */
  stop(): void {
    this.#stopped = true
  }

  async send(round: Round): Promise<Result> {
    const { entries, rehearsed } = round
    if (entries.length > 0) this.liveAtMs = performance.now()
    if (!rehearsed) return this.call(entries, async (handle, call) => this.#parking?.park(round, handle, call))
    this.#station.rate?.take(entries.length)
    return rehearse(this.#station.subscription, entries)
  }

  /** `parked` waits for the end of a parked call. */
  async call(entries: readonly Entry[], parked: NonNullable<CallOptions['parked']>): Promise<Result> {
    const { db, subscription, owner, rate, abort } = this.#station
    if (entries.length === 0) return new Result()
    rate?.take(entries.length)
    const lost = new AbortController()
    const onLost = () => lost.abort()
    this.#leases.onLost.add(onLost)
    const lanes = new Map(this.#leases.lanes.map((lane) => [lane.lane, lane]))
    const holder = (entry: Entry): LeasedLane | undefined => {
      const lane = lanes.get(entry.lane)
      return lane !== undefined && this.#leases.lanes.includes(lane) ? lane : undefined
    }
    return deliver(subscription, entries, {
      signal: AbortSignal.any([abort, lost.signal]),
      deadlineMs: () => this.#deadlineMs(),
      mine: (entry) => holder(entry) !== undefined,
      called: (events, outcomes, durationMs) => tellCall(this.#station, events, outcomes, durationMs),
      sending: async (entry, note) => {
        const mine = holder(entry)
        if (mine === undefined) throw new HermodError('HMD_LEASE_LOST', `lane ${entry.lane} is no longer held`)
        await sending(db, subscription.name, owner, mine, entry.event.position, note)
      },
      abandoned: () => this.#leases.abandoned(),
      parked,
    }).finally(() => this.#leases.onLost.delete(onLost))
  }

  /** The halves of a parked call are not sent while the subscription is paused or outdated. */
  #halted(): boolean {
    if (this.#parking === undefined) return false
    const { mode, outdated } = this.#station.state()
    return mode === 'paused' || outdated
  }

  /** Deadline of the next call: always shorter than what is left of the leases, which are renewed first. */
  async #deadlineMs(): Promise<number> {
    const { callMs } = this.#station.subscription
    if (this.#stopped || this.#halted()) return 0
    // If the database does not answer, the lease is still valid for a while.
    await this.#leases.keep(callMs + marginMs).catch(() => {})
    return Math.min(callMs, this.#leases.leftMs - marginMs)
  }
}
