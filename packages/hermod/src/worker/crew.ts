/**
 * A subscription and the claim loops that serve it in one worker. An idle crew sleeps: it has no loop, no timer and no
 * statement of its own. News of what it listens to wake it, or the worker's look on behalf of all (lookout.ts).
 *
 *   asleep ──hear, wake──▶ awake: loops claim, deliver, settle ──nothing to claim for a while──▶ asleep
 */
import { matches } from '../filter.ts'
import type { News } from '../flow/sequence.ts'
import type { ResolvedSubscription } from '../options.ts'
import { notify } from '../telemetry.ts'
import { Loop } from './loop.ts'
import type { Station } from './station.ts'

/** What is there only while it is awake. */
interface Shift {
  readonly station: Station
  readonly loops: Map<number, Loop>
}

export class Crew {
  readonly subscription: ResolvedSubscription
  /** Up to here everything was delivered or passed, by whomever. */
  clear = -1n
  readonly #size: number
  readonly #station: (abort: AbortSignal) => Station
  readonly #abort = new AbortController()
  readonly #running = new Set<Promise<void>>()
  #shift: Shift | undefined
  #heard: bigint | undefined
  /** The last of which news have told. */
  #told = -1n
  #begun = false
  #retired: Promise<void> | undefined

  /** `size`: how many claim loops. `station` is made anew each time it wakes. */
  constructor(subscription: ResolvedSubscription, size: number, station: (abort: AbortSignal) => Station) {
    this.subscription = subscription
    this.#size = size
    this.#station = station
  }

  /** Something it listens to was numbered up to here; undefined: that has to be asked. */
  get heard(): bigint | undefined {
    return this.#heard
  }

  /** It is asked about all there is. */
  forget(): void {
    this.#heard = undefined
  }

  /** It was asked about everything up to here; news may have told of more meanwhile. */
  asked(position: bigint): void {
    this.#heard = position > this.#told ? position : this.#told
  }

  /** Some of its loops are not there, or all: somebody else has to look for work. */
  get resting(): boolean {
    return (this.#shift?.loops.size ?? 0) < this.#size
  }

  /** Every loop, for runOnce, which carries them on by itself. */
  get loops(): readonly Loop[] {
    const shift = this.#awake()
    return Array.from({ length: this.#size }, (_, index) => this.#loop(shift, index))
  }

  /** Loops that are there. */
  get present(): readonly Loop[] {
    return [...(this.#shift?.loops.values() ?? [])]
  }

  listensTo(type: string, aggregateType: string): boolean {
    const { types, aggregates } = this.subscription
    return matches(types, type) && (aggregates?.includes(aggregateType) ?? true)
  }

  /** From now on it may wake. */
  begin(): void {
    this.#begun = true
  }

  /** Something it listens to was numbered; undefined: something that nobody has told. */
  hear(news: News | undefined): void {
    if (news !== undefined) this.#note(news.to)
    const lanes = this.subscription.lanes === 1 ? [0] : news?.lanes
    const held = new Set(this.present.flatMap(({ lanes }) => lanes))
    const free = news === undefined || (lanes ?? []).some((lane) => !held.has(lane))
    for (const loop of this.present) loop.hear(news && lanes, free)
    if (free && news !== undefined) this.wake()
  }

  /** The same, where nobody knows in which lanes. */
  heardOf(position: bigint): void {
    this.#note(position)
    this.wake()
  }

  #note(position: bigint): void {
    if (position > this.#told) this.#told = position
    if (this.#heard !== undefined && position > this.#heard) this.#heard = position
  }

  /** There may be something to claim. */
  wake(): void {
    if (!this.#begun || this.#retired !== undefined) return
    const shift = this.#awake()
    for (let index = 0; index < this.#size; index++) if (!shift.loops.has(index)) this.#run(shift, index)
  }

  /** No further call begins; calls in flight have `graceMs` to end. Calling it twice is harmless. */
  retire(graceMs: number): Promise<void> {
    this.#retired ??= this.#retire(graceMs)
    return this.#retired
  }

  async #retire(graceMs: number): Promise<void> {
    for (const loop of this.present) loop.stop()
    if (this.#running.size === 0) return
    const grace = setTimeout(() => this.#abort.abort(), graceMs)
    await Promise.all(this.#running)
    clearTimeout(grace)
  }

  #awake(): Shift {
    this.#shift ??= { station: this.#station(this.#abort.signal), loops: new Map() }
    return this.#shift
  }

  #loop({ station, loops }: Shift, index: number): Loop {
    const known = loops.get(index)
    if (known !== undefined) return known
    const loop = new Loop(station, () => this.#share(station, index))
    loops.set(index, loop)
    return loop
  }

  #share(station: Station, index: number): number {
    const { lanes, workers } = station.state()
    const mine = Math.ceil(lanes / workers)
    return Math.floor(mine / this.#size) + (index < mine % this.#size ? 1 : 0)
  }

  #run(shift: Shift, index: number): void {
    const loop = this.#loop(shift, index)
    const run = loop
      .run()
      .catch((error) =>
        notify(shift.station.listener, 'error', { during: 'deliver', error, subscription: this.subscription.name }),
      )
      .finally(() => {
        this.#running.delete(run)
        shift.loops.delete(index)
        if (shift.loops.size === 0 && this.#shift === shift) this.#shift = undefined
        // Somebody called while it was on its way out.
        if (loop.called) this.wake()
      })
    this.#running.add(run)
  }
}
