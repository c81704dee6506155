/**
 * Tells an event that cannot be delivered from a destination that is away: an event that is unavailable
 * again and again, while others pass, is itself the reason and spends an attempt.
 */
import type { Entry, Result } from '../flow/result.ts'
import type { Outcome } from '../sinks/sink.ts'

const strikesMax = 5

export class Strikes {
  #position = -1n
  #count = 0
  #passes = -1

  /** The first of these entries that was unavailable is struck. `passes`: deliveries that passed so far. */
  note(entries: readonly Entry[], result: Result, passes: number): void {
    const entry = entries.find((one) => isUnavailable(result.get(one)))
    if (entry === undefined || !this.#strike(entry.event.position, passes)) return
    result.set(entry, { ...(result.get(entry) as Outcome), outcome: 'retry' })
  }

  /** True: too often, while others passed. */
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
