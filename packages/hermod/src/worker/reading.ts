/**
 * What a claim loop reads next: of which lanes, and how much. A batch that failed comes back smaller,
 * down to one event of one lane; one that passed lets the next ones grow again.
 */

import { enlist } from '../flow/ledger.ts'
import { type LaneRead, type Reader, read } from '../flow/read.ts'
import type { LeasedLane } from './lane.ts'
import type { Leases } from './leases.ts'
import type { Batch } from './round.ts'
import type { Station } from './station.ts'

export class Reading {
  readonly #station: Station
  readonly #leases: Leases
  readonly #countMax: number
  #count: number
  #reads = 0

  constructor(station: Station, leases: Leases) {
    this.#station = station
    this.#leases = leases
    const { batch, sink } = station.subscription
    const itemsMax = sink.capabilities?.itemsMax ?? batch.count
    // What may be parked is one call: its lanes wait for one task.
    this.#countMax = station.poller === undefined ? batch.count : Math.min(batch.count, Math.max(1, itemsMax))
    this.#count = this.#countMax
  }

  /** A batch is one event of one lane: it keeps failing. */
  get single(): boolean {
    return this.#count <= 1
  }

  /** Lanes whose destination works on no task, and which send nothing again. */
  get lanes(): LeasedLane[] {
    return this.#leases.free
  }

  /** A probe, which is one event, says nothing about size. */
  failed(sent: number): void {
    if (sent > 1) this.#count = Math.max(1, Math.floor(this.#count / 2))
  }

  passed(sent: number): void {
    if (sent > 1 || sent >= this.#count) this.#count = Math.min(this.#countMax, this.#count * 4)
  }

  /** Milliseconds until the rate limit lets something go. */
  get waitMs(): number {
    return this.#allowance() > 0 ? 0 : (this.#station.rate?.waitMs() ?? 0)
  }

  /** Undefined: the subscription is paused, held or has a newer revision. */
  async read(probing: boolean): Promise<Batch[] | undefined> {
    const { db, subscription, owner } = this.#station
    const lanes = this.#lanesToRead(probing)
    const count = probing ? 1 : this.#allowance()
    if (count === 0) return []
    if (subscription.ledger && !probing) await enlist(db, subscription, owner, lanes, count)
    const reader = this.#reader(lanes, count, probing)
    return batchesOf(lanes, reader, await this.#through(() => read(db, reader)))
  }

  #through<T>(work: () => Promise<T>): Promise<T> {
    const { turnstile, subscription } = this.#station
    return turnstile.through(subscription.priority, work)
  }

  #reader(lanes: readonly LeasedLane[], count: number, probing: boolean): Reader {
    const { subscription, kinds, definitions, listens } = this.#station
    return {
      subscription,
      kinds,
      definitions,
      listens,
      lanes: lanes.map(({ lane, ahead, full }) => ({ lane, after: ahead, full })),
      limits: { count, bytes: subscription.batch.bytes, probing },
    }
  }

  #lanesToRead(probing: boolean): LeasedLane[] {
    const { lanes } = this
    const first = this.#reads++ % lanes.length
    if (probing) return [...lanes.slice(first), ...lanes.slice(0, first)]
    if (this.single) return lanes.slice(first, first + 1)
    return lanes
  }

  /** How many events the next read may bring. */
  #allowance(): number {
    const { rate, state } = this.#station
    if (rate === undefined) return this.#count
    rate.share(this, this.#leases.lanes.length / state().lanes)
    return Math.min(this.#count, rate.available())
  }

  /** It reads no more: its share of the rate is free. */
  end(): void {
    this.#station.rate?.share(this, 0)
  }
}

function batchesOf(
  lanes: readonly LeasedLane[],
  { lanes: asked }: Reader,
  reads: readonly LaneRead[] | undefined,
): Batch[] | undefined {
  return reads?.map((found, index) => {
    const lane = lanes[index] as LeasedLane
    const { after: from } = asked[index] as (typeof asked)[0]
    lane.full = found.more
    lane.ahead = found.through
    return { lane, from, read: found }
  })
}
