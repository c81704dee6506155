/**
 * What a claim loop reads next: of which lanes, and how much. A batch that failed comes back smaller,
 * down to one event of one lane; one that passed lets the next ones grow again.
 */
import { type LaneRead, type Reader, read } from '../flow/claim.ts'
import { enlist } from '../flow/ledger.ts'
import { type Along, type Turned, turn } from '../flow/turn.ts'
import type { Batch } from './batch.ts'
import type { HeldLane } from './lane.ts'
import type { Leases } from './leases.ts'
import type { Station } from './station.ts'

interface LaneAt {
  readonly lane: HeldLane
  readonly at: bigint
}

export class Reading {
  readonly #station: Station
  readonly #leases: Leases
  readonly #countMax: number
  #count: number
  #turns = 0
  /** Of these lanes everything up to this head was read. */
  #sated: { readonly head: bigint; readonly lanes: readonly LaneAt[] } | undefined

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
  get lanes(): HeldLane[] {
    return this.#leases.lanes.filter(({ parked }) => parked === undefined)
  }

  /** A probe, which is one event, says nothing about size. */
  failed(sent: number): void {
    if (sent > 1) this.#count = Math.max(1, Math.floor(this.#count / 2))
  }

  passed(sent: number): void {
    if (sent > 1 || sent >= this.#count) this.#count = Math.min(this.#countMax, this.#count * 4)
  }

  /** The rate allows nothing now. */
  get spent(): boolean {
    return this.#allowance() === 0
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

  /** The same, and in one statement with it a step and what is to be settled. */
  async turn(along: Along): Promise<Turned & { readonly batches: Batch[] | undefined }> {
    const { db, owner } = this.#station
    const lanes = this.#lanesToRead(false)
    const reader = this.#reader(lanes, this.#allowance(), false)
    const known = this.#known(lanes)
    const turned = await this.#through(() => turn(db, owner, { ...along, known }, reader))
    const batches = batchesOf(lanes, reader, turned.reads)
    const all = turned.reads?.every(({ more }) => !more) ? turned.step : undefined
    this.#sated = all && { head: all.head, lanes: lanes.map((lane) => ({ lane, at: lane.ahead })) }
    return { ...turned, batches }
  }

  /** The head up to which these lanes were read, if that is known and nothing has changed since. */
  #known(lanes: readonly HeldLane[]): bigint | undefined {
    const { head, lanes: read = [] } = this.#sated ?? {}
    const same = lanes.length === read.length && read.every(({ lane, at }) => lane.ahead === at)
    return same && read.every(({ lane }, index) => lanes[index] === lane) ? head : undefined
  }

  #through<T>(work: () => Promise<T>): Promise<T> {
    const { turnstile, subscription } = this.#station
    return turnstile.through(subscription.priority, work)
  }

  #reader(lanes: readonly HeldLane[], count: number, probing: boolean): Reader {
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

  #lanesToRead(probing: boolean): HeldLane[] {
    const { lanes } = this
    const first = this.#turns++ % lanes.length
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
  lanes: readonly HeldLane[],
  { lanes: asked }: Reader,
  reads: readonly LaneRead[] | undefined,
): Batch[] | undefined {
  return reads?.map((found, index) => {
    const lane = lanes[index] as HeldLane
    const { after: from } = asked[index] as (typeof asked)[0]
    lane.full = found.more
    lane.ahead = found.through
    return { lane, from, read: found }
  })
}
