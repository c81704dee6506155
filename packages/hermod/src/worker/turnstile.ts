/**
 * Who may read next: at most `places` at once, higher priority first. Every eighth place goes to the one
 * that has waited longest, so that nobody starves.
 */
const floorEvery = 8

interface Waiter {
  readonly priority: number
  readonly go: () => void
}

export class Turnstile {
  readonly #places: number
  readonly #waiting: Waiter[] = []
  #inside = 0
  #turns = 0

  constructor(places: number) {
    this.#places = places
  }

  async through<T>(priority: number, work: () => Promise<T>): Promise<T> {
    if (this.#inside < this.#places) this.#inside++
    else await new Promise<void>((go) => this.#waiting.push({ priority, go }))
    try {
      return await work()
    } finally {
      this.#leave()
    }
  }

  /** Passes the place on to the next waiter; it is never free in between. */
  #leave(): void {
    const next = this.#next()
    if (next === undefined) this.#inside--
    else next.go()
  }

  #next(): Waiter | undefined {
    if (this.#waiting.length === 0) return undefined
    let at = 0
    if (++this.#turns % floorEvery !== 0) {
      for (const [index, { priority }] of this.#waiting.entries()) {
        if (priority > (this.#waiting[at] as Waiter).priority) at = index
      }
    }
    return this.#waiting.splice(at, 1)[0]
  }
}
