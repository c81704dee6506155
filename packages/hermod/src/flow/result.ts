/**
 * The outcomes of the entries of one batch. They are kept on the entries themselves: a new map of thousands
 * of entries for every batch took a tenth of the worker's time.
 */
import type { DeliveredEvent } from '../event.ts'
import type { Outcome } from '../sinks/outcome.ts'

/** `blocked`: not sent, because an earlier event of its aggregate failed. */
export type EntryOutcome = Outcome | 'blocked'

/** One event of a lane, and what its aggregate's rows mean for it. */
export interface Entry {
  /** Replaced when the subscription loads the current row. */
  event: DeliveredEvent
  readonly lane: number
  /** blocked: not to be sent now; dead: its aggregate has a dead letter; due: it has a row, or is sent with one. */
  readonly mark: 'blocked' | 'dead' | 'due' | null
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

  /** Takes over the outcomes of another result. */
  add(other: Result): void {
    for (const entry of other.entries) this.set(entry, other.get(entry) as EntryOutcome)
  }
}
