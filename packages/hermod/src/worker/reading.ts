/**
 * What a claim loop reads next: from which lanes, and how much. After a batch that failed the next one is
 * smaller, down to one event of one lane; after one that passed it grows again.
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
    // If calls may be parked, a batch is one call, so that its lanes wait for one task.
    this.#countMax = station.poller === undefined ? batch.count : Math.min(batch.count, Math.max(1, itemsMax))
    this.#count = this.#countMax
  }

  /** Batches keep failing: the next is one event of one lane. */
  get single(): boolean {
    return this.#count <= 1
  }

  /** Lanes without a parked call and without a slice of a replay under way. */
  get lanes(): LeasedLane[] {
    return this.#leases.free
  }

  /** A probe is one event and says nothing about the size of batches. */
  failed(sent: number): void {
    if (sent > 1) this.#count = Math.max(1, Math.floor(this.#count / 2))
  }

  passed(sent: number): void {
    if (sent > 1 || sent >= this.#count) this.#count = Math.min(this.#countMax, this.#count * 4)
  }

  /** Milliseconds until the rate limit allows an event. */
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
    for (const lane of lanes) lane.news = false
    return batchesOf(lanes, reader, await this.#through(() => read(db, reader)).catch((error) => this.#overlong(error)))
  }

  /** A read that took too long: the same one would take as long again. */
  #overlong(error: unknown): never {
    if ((error as { code?: unknown }).code === 'ETIMEDOUT') this.failed(this.#count)
    throw error
  }

  #through<T>(work: () => Promise<T>): Promise<T> {
    const { turnstile, subscription } = this.#station
    return turnstile.through(subscription.priority, work)
  }

  #reader(lanes: readonly LeasedLane[], count: number, probing: boolean): Reader {
    const { subscription, kinds, definitions, listens, state } = this.#station
    return {
      subscription,
      kinds,
      definitions,
      listens,
      lanes: lanes.map(({ lane, ahead, full }) => ({ lane, after: ahead, full })),
      limits: { count, bytes: subscription.batch.bytes, probing, rehearsed: state().mode === 'dry-run' },
    }
  }

  #lanesToRead(probing: boolean): LeasedLane[] {
    const withNews = this.lanes.filter(({ news }) => news)
    const lanes = probing || withNews.length === 0 ? this.lanes : withNews
    const first = this.#reads++ % lanes.length
    if (probing) return [...lanes.slice(first), ...lanes.slice(0, first)]
    return this.single ? lanes.slice(first, first + 1) : lanes
  }

  /** How many events the next read may bring. */
  #allowance(): number {
    const { rate, state } = this.#station
    if (rate === undefined) return this.#count
    rate.share(this, this.#leases.lanes.length / state().lanes)
    return Math.min(this.#count, rate.available())
  }

  /** Gives up its share of the rate limit: this loop reads no more. */
  end(): void {
    this.#station.rate?.share(this, 0)
  }
}

function batchesOf(
  lanes: readonly LeasedLane[],
  { lanes: asked, limits: { rehearsed = false } }: Reader,
  reads: readonly LaneRead[] | undefined,
): Batch[] | undefined {
  return reads?.map((found, index) => {
    const lane = lanes[index] as LeasedLane
    const { after: from } = asked[index] as (typeof asked)[0]
    lane.full = found.more
    lane.news ||= found.more
    lane.ahead = found.through
    return { lane, from, read: found, rehearsed }
  })
}
