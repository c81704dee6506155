/**
 * What became of the entries of one batch. Kept on the entries themselves: a map of thousands of
 * them, made anew for every batch, cost a tenth of the worker's time.
 */
import type { DeliveredEvent } from '../event.ts'
import type { Outcome } from '../sinks/outcome.ts'

/** Passed over: its aggregate waits. */
export type EntryOutcome = Outcome | 'blocked'

/** One event of a lane, and what its aggregate's rows mean for it. */
export interface Entry {
  /** Replaced when the subscription loads the current row. */
  event: DeliveredEvent
  readonly lane: number
  /** held: its aggregate waits; dead: its aggregate has a dead letter; due: it has a row itself. */
  readonly mark: 'held' | 'dead' | 'due' | null
  /** Attempts already spent. */
  readonly attempts: number
  /** Its row is no longer there; retention never lets that happen. */
  readonly gone: boolean
  /** The result that holds its outcome, and the outcome. */
  result?: Result
  outcome?: EntryOutcome
}

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
