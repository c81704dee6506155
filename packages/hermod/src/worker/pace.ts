/**
 * How fast a replay goes in one claim loop: slices of about ten milliseconds (or twice the quickest
 * call, where the destination is farther away), a rest of the same length after each, and at most as
 * many events a second as the replay and the subscription allow.
 */
import { Rate } from './rate.ts'
import type { Station } from './station.ts'

const sliceMs = 10
const countMax = 1_000
const failedMs = 250

type Replay = NonNullable<ReturnType<Station['state']>['replay']>

/** One bucket a replay, for all loops of a subscription in this worker. */
const rates = new WeakMap<Station, { journey: bigint; rate: Rate }>()

export class Pace {
  readonly #station: Station
  #count = 16
  #quickestMs = Number.POSITIVE_INFINITY
  #notBeforeMs = 0

  constructor(station: Station) {
    this.#station = station
  }

  /** Until a slice may go. */
  waitMs(replay: Replay): number {
    const limits = [this.#rate(replay), this.#station.rate]
    const rateMs = Math.max(...limits.map((rate) => rate?.waitMs() ?? 0))
    return Math.max(0, rateMs, this.#notBeforeMs - performance.now())
  }

  /** How many events the next slice may hold; they count as taken. */
  allowance(replay: Replay): number {
    const rate = this.#rate(replay)
    const { rate: shared, subscription } = this.#station
    const available = (some: Rate | undefined) => some?.available() ?? Number.POSITIVE_INFINITY
    const most = Math.min(countMax, subscription.batch.count, available(shared))
    const count = Math.min(this.#count, most, available(rate))
    rate?.take(count)
    return count
  }

  took(count: number, ms: number): void {
    if (count > 0) this.#quickestMs = Math.min(this.#quickestMs * 1.05, ms)
    const target = Math.max(sliceMs, 2 * this.#quickestMs)
    if (ms > target) this.#count = Math.max(1, Math.floor(this.#count / 2))
    else if (ms < target / 2 && count >= this.#count)
      this.#count = Math.min(countMax, this.#count * 2)
    this.#notBeforeMs = performance.now() + ms
  }

  failed(): void {
    this.#count = Math.max(1, Math.floor(this.#count / 4))
    this.#notBeforeMs = performance.now() + failedMs
  }

  #rate({ journey, plan }: Replay): Rate | undefined {
    const { ratePerSecond } = plan as { ratePerSecond?: number }
    if (ratePerSecond === undefined) return undefined
    let known = rates.get(this.#station)
    if (known?.journey !== journey) {
      known = { journey, rate: new Rate(ratePerSecond) }
      rates.set(this.#station, known)
    }
    // Evenly between workers: lanes that have met their live cursor are given back.
    known.rate.share(this.#station, 1 / Math.max(1, this.#station.state().workers))
    return known.rate
  }
}
