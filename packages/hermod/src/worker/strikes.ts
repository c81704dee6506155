/**
 * Tells an event that cannot be delivered from a destination that is unavailable: if an event is unavailable
 * again and again while others are delivered, the event is the reason, and it spends an attempt.
 */
import type { Entry, Result } from '../flow/result.ts'
import type { Outcome } from '../sinks/sink.ts'

const strikesMax = 5

export class Strikes {
  #position = -1n
  #count = 0
  #passes = -1

  /** The first of these entries that was unavailable gets a strike. `passes`: events delivered so far. */
  note(entries: readonly Entry[], result: Result, passes: number): void {
    const entry = entries.find((one) => isUnavailable(result.get(one)))
    if (entry === undefined || !this.#strike(entry.event.position, passes)) return
    result.set(entry, { ...(result.get(entry) as Outcome), outcome: 'retry' })
  }

  /** True: too often, while others were delivered. */
  #strike(position: bigint, passes: number): boolean {
    if (this.#position !== position) {
      this.#position = position
      this.#count = 0
      this.#passes = -1
    }
    if (passes > this.#passes) this.#count++
    this.#passes = passes
    if (this.#count < strikesMax) return false
    this.#count = 0
    return true
  }
}

function isUnavailable(outcome: Outcome | 'blocked' | undefined): boolean {
  return outcome !== undefined && outcome !== 'blocked' && outcome.outcome === 'unavailable'
}
