/** A lane this worker holds: where it is settled, how far it is read, and what needs no second send. */
import type { ClaimedLane, Entry, LaneRead } from '../flow/claim.ts'
import { aggregateKey } from '../flow/settle.ts'

export class HeldLane {
  readonly lane: number
  readonly fence: bigint
  /** Settled up to here. */
  cursor: bigint
  /** Read up to here; ahead of the cursor while a batch is in flight. */
  ahead: bigint
  /** Delivered beyond the cursor, because an earlier event of the lane could not be. */
  readonly beyond = new Set<bigint>()
  /** Times in a row its head was unavailable while others passed. */
  strikes = 0
  passesAtStrike = 0
  /** The limit was met at the last read. */
  full = false
  /** Rows in the batch in flight. */
  sending: ReadonlySet<bigint> = new Set()
  /** Aggregates that failed in the batch in flight. */
  failed: ReadonlySet<string> = new Set()

  constructor(claimed: ClaimedLane) {
    this.lane = claimed.lane
    this.fence = claimed.fence
    this.cursor = claimed.cursor
    this.ahead = claimed.cursor
  }

  /** Back to what is settled: what was read ahead is forgotten. */
  rewind(): void {
    this.ahead = this.cursor
  }

  /** What was read ahead, seen again with what is known by now. */
  refresh(read: LaneRead): LaneRead {
    const fresh = read.fresh.map((entry) => this.#hold(entry))
    const due = read.due.filter(({ event }) => !this.sending.has(event.position))
    return { ...read, fresh, due }
  }

  #hold(entry: Entry): Entry {
    return this.failed.has(aggregateKey(entry)) ? { ...entry, mark: 'held' } : entry
  }

  settled(to: bigint, beyond: readonly bigint[]): void {
    this.cursor = to
    for (const position of this.beyond) if (position <= to) this.beyond.delete(position)
    for (const position of beyond) this.beyond.add(position)
  }
}
