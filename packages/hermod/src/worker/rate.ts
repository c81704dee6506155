/**
 * A token bucket: at most so many events per second, divided between workers by the lanes they have.
 * All claim loops of a subscription in one worker use the same bucket.
 */
export class Rate {
  readonly #perSecond: number
  readonly #now: () => number
  readonly #shares = new Map<object, number>()
  #tokens = 0
  #at: number

  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.#perSecond = perSecond
    this.#now = now
    this.#at = now()
  }

  /** The share of all lanes that `holder` has now, 0 to 1. */
  share(holder: object, part: number): void {
    if (this.#shares.get(holder) === part) return
    this.#fill()
    if (part === 0) this.#shares.delete(holder)
    else this.#shares.set(holder, part)
  }

  /** How many events may be sent now. */
  available(): number {
    this.#fill()
    return Math.max(0, Math.floor(this.#tokens))
  }

  take(count: number): void {
    this.#tokens -= count
  }

  /** Milliseconds until one may be sent; 0: now. */
  waitMs(): number {
    this.#fill()
    if (this.#tokens >= 1) return 0
    return Math.max(1, Math.ceil(((1 - this.#tokens) / Math.max(0.001, this.#speed())) * 1000))
  }

  #speed(): number {
    let sum = 0
    for (const part of this.#shares.values()) sum += part
    return this.#perSecond * Math.min(1, sum)
  }

  /** The bucket holds what a quarter of a second allows. */
  #fill(): void {
    const now = this.#now()
    const perSecond = this.#speed()
    const full = Math.max(1, perSecond / 4)
    this.#tokens = Math.min(full, this.#tokens + ((now - this.#at) / 1000) * perSecond)
    this.#at = now
  }
}
