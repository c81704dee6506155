/** A token bucket: at most so many events a second, shared between workers by the lanes they hold. */
export class Rate {
  readonly #perSecond: number
  readonly #now: () => number
  #tokens: number
  #at: number

  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.#perSecond = perSecond
    this.#now = now
    this.#tokens = 0
    this.#at = now()
  }

  /** How many may go now. `share` is the part of the lanes held here, 0 to 1. */
  available(share: number): number {
    const now = this.#now()
    const perSecond = this.#perSecond * share
    const burst = Math.max(1, perSecond / 4)
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#at) / 1000) * perSecond)
    this.#at = now
    return Math.floor(this.#tokens)
  }

  take(count: number): void {
    this.#tokens -= count
  }

  /** Milliseconds until one may go. */
  waitMs(share: number): number {
    const perSecond = Math.max(0.001, this.#perSecond * share)
    return Math.max(1, Math.ceil(((1 - this.#tokens) / perSecond) * 1000))
  }
}
