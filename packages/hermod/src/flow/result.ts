/**
 * What became of the entries of one batch. Kept on the entries themselves: a map of thousands of
 * them, made anew for every batch, cost a tenth of the worker's time.
 */
import type { Outcome } from '../sinks/outcome.ts'
import type { Entry } from './claim.ts'

/** Passed over: its aggregate waits. */
export type EntryOutcome = Outcome | 'passed'

export class Result {
  /** Every entry that has an outcome here, in the order they got it. */
  readonly entries: Entry[] = []

  get size(): number {
    return this.entries.length
  }

  /** Undefined: not tried. */
  get(entry: Entry): EntryOutcome | undefined {
    return entry.result === this ? entry.outcome : undefined
  }

  has(entry: Entry): boolean {
    return entry.result === this
  }

  set(entry: Entry, outcome: EntryOutcome): this {
    if (entry.result !== this) {
      entry.result = this
      this.entries.push(entry)
    }
    entry.outcome = outcome
    return this
  }

  /** Takes over what another result knows. */
  add(other: Result): void {
    for (const entry of other.entries) this.set(entry, other.get(entry) as EntryOutcome)
  }
}
