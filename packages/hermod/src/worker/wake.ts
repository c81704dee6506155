/**
 * A wait that a wake-up ends early. A wake-up between looking and waiting is not lost: the waiter says
 * which wake-up it has seen.
 */
export class Wake {
  #count = 0
  readonly #waiting = new Set<() => void>()

  /** How many times it was woken; read it before looking for work. */
  get count(): number {
    return this.#count
  }

  wake(): void {
    this.#count++
    this.stir()
  }

  /** Ends pending waits without counting as a wake-up. */
  stir(): void {
    for (const go of this.#waiting) go()
    this.#waiting.clear()
  }

  /** Returns at once when woken since `seen`, else after `ms` or the next wake-up. */
  wait(ms: number, seen: number = this.#count): Promise<void> {
    if (seen !== this.#count || ms <= 0) return Promise.resolve()
    return new Promise((resolve) => {
      const go = () => {
        clearTimeout(timer)
        this.#waiting.delete(go)
        resolve()
      }
      const timer = setTimeout(go, ms)
      this.#waiting.add(go)
    })
  }
}
