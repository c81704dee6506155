/**
 * How fast a replay goes in one claim loop: short slices (slice-size.ts), a rest after each, longer beside live events,
 * and at most as many events a second as the replay and the subscription allow.
 */
import { Rate } from '../rate.ts'
import type { Station } from '../station.ts'
import type { Wake } from '../wake.ts'
import { SliceSize } from './slice-size.ts'

const failedMs = 250
/** The rest after a slice, as a multiple of its duration: beside live events, and without any for a while. */
const besideLive = 3
const alone = 0.5
const liveMs = 2_000

type Replay = NonNullable<ReturnType<Station['state']>['replay']>

/** What all loops of a subscription in this worker share: one slice at a time, one token bucket per replay. */
interface Shared {
  busy: Pace | undefined
  rate: { readonly journey: bigint; readonly bucket: Rate } | undefined
  readonly wakes: Set<Wake>
}

const shared = new WeakMap<Station, Shared>()

function sharedOf(station: Station): Shared {
  const known = shared.get(station) ?? { busy: undefined, rate: undefined, wakes: new Set() }
  shared.set(station, known)
  return known
}

export class Pace {
  readonly #station: Station
  readonly #shared: Shared
  readonly #wake: Wake
  readonly #liveAtMs: () => number
  readonly #size = new SliceSize()
  #notBeforeMs = 0

  /** `liveAtMs`: when this loop last sent something live. */
  constructor(station: Station, wake: Wake, liveAtMs: () => number) {
    this.#station = station
    this.#liveAtMs = liveAtMs
    this.#shared = sharedOf(station)
    this.#wake = wake
    this.#shared.wakes.add(wake)
  }

  /** Its loop has ended. */
  end(): void {
    this.#shared.wakes.delete(this.#wake)
  }

  begun(): void {
    this.#shared.busy = this
  }

  ended(): void {
    this.#shared.busy = undefined
  }

  /** This loop has nothing to send just now: wakes the others. */
  done(): void {
    for (const wake of this.#shared.wakes) wake.stir()
  }

  /** Milliseconds until a slice may start; infinite while another loop's slice is under way. */
  waitMs(replay: Replay): number {
    if (this.#shared.busy !== undefined) return Number.POSITIVE_INFINITY
    const limits = [this.#rate(replay), this.#station.rate]
    const rateMs = Math.max(...limits.map((rate) => rate?.waitMs() ?? 0))
    return Math.max(0, rateMs, this.#notBeforeMs - performance.now())
  }

  /** How many events the next slice may hold; they count as taken. */
  allowance(replay: Replay): number {
    const rate = this.#rate(replay)
    const { rate: common, subscription } = this.#station
    const available = (some: Rate | undefined) => some?.available() ?? Number.POSITIVE_INFINITY
    const count = Math.min(this.#size.next(), subscription.batch.count, available(common), available(rate))
    rate?.take(count)
    return count
  }

  /** `parkedMs` of `ms` the destination worked on its own: nobody has to rest from that. */
  took(count: number, ms: number, parkedMs = 0): void {
    this.#size.took(count, ms)
    this.rest(ms - parkedMs)
  }

  /** Rests after work that took `ms`: longer while there are live events. */
  rest(ms: number): void {
    const now = performance.now()
    this.#notBeforeMs = now + ms * (now - this.#liveAtMs() < liveMs ? besideLive : alone)
  }

  failed(): void {
    this.#size.failed()
    this.#notBeforeMs = performance.now() + failedMs
  }

  #rate({ journey, plan }: Replay): Rate | undefined {
    const { ratePerSecond } = plan as { ratePerSecond?: number }
    if (ratePerSecond === undefined) return undefined
    if (this.#shared.rate?.journey !== journey) this.#shared.rate = { journey, bucket: new Rate(ratePerSecond) }
    const { bucket } = this.#shared.rate
    // Shared evenly between workers: lanes whose replay has ended are given back.
    bucket.share(this.#station, 1 / Math.max(1, this.#station.state().workers))
    return bucket
  }
}
