/**
 * How many events the next slice of a replay holds. Live events of its lane wait as long as a slice takes, so it should
 * take no longer than 8 ms, or than twice a call with one event, where the destination or the whole machine is slower.
 */

const sliceMs = 8
const countMax = 1_000
/** A call with one event takes this long: the first slices hold so many, and grow faster. */
const slowMs = 100
const slowCount = 64
/** So often a slice has one event only: that is what a call costs, whatever is in it. */
const soleEvery = 32
/** The median of the last few: one slow call says nothing about the others. */
const solesMax = 5

export class SliceSize {
  #count = 16
  #slices = 0
  readonly #soleMs: number[] = []

  /** Of the next slice; asked once for each. */
  next(): number {
    return this.#slices++ % soleEvery === 0 ? 1 : this.#count
  }

  took(count: number, ms: number): void {
    if (count === 0) return
    if (count === 1) this.#learn(ms)
    const targetMs = Math.max(sliceMs, 2 * this.#typicalMs())
    if (count > 1 && ms > targetMs) this.#count = Math.max(1, Math.floor(this.#count / 2))
    else if (count >= this.#count && ms <= this.#quickMs())
      this.#count = Math.min(countMax, this.#count * this.#growth())
  }

  failed(): void {
    this.#count = Math.max(1, Math.floor(this.#count / 4))
  }

  /** A slice this quick may be twice as large. It is never quicker than a call that has to wait for its destination. */
  #quickMs(): number {
    return Math.max(sliceMs / 2, 1.5 * this.#typicalMs())
  }

  /** Where a call takes long whatever is in it, small slices are what makes a replay slow. */
  #growth(): number {
    return this.#typicalMs() >= slowMs ? 4 : 2
  }

  #learn(ms: number): void {
    if (this.#soleMs.length === 0 && ms >= slowMs) this.#count = slowCount
    this.#soleMs.push(ms)
    if (this.#soleMs.length > solesMax) this.#soleMs.shift()
  }

  /** Of a call with one event. */
  #typicalMs(): number {
    const sorted = this.#soleMs.toSorted((a, b) => a - b)
    return sorted[sorted.length >> 1] ?? 0
  }
}
