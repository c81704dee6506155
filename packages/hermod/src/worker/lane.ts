/** A lane leased by this worker: how far it is settled, how far it is read, and what was delivered beyond the cursor. */
import type { ClaimedLane } from '../flow/claim.ts'
import { Strikes } from './strikes.ts'

export class LeasedLane {
  readonly lane: number
  readonly fence: bigint
  /** The lease is certainly valid until then, on the monotonic clock. */
  untilMs: number
  /** Settled up to here. */
  cursor: bigint
  /** Read up to here; above the cursor while a batch is in flight. */
  ahead: bigint
  /** Positions delivered beyond the cursor, because an earlier event of the lane could not be delivered. */
  readonly beyond = new Set<bigint>()
  /** The last read hit a limit. */
  full = false
  /** There may be events above `ahead`. */
  news = true
  /** A call is parked; `recorded`: the next owner of the lane can ask for it. */
  parked: 'waiting' | 'recorded' | undefined
  /** The database was asked what a former owner had parked. */
  asked = false
  /** When its newest states have to be sent again, on the monotonic clock (again.ts). */
  againAtMs: number
  readonly strikes = new Strikes()

  constructor(claimed: ClaimedLane, untilMs: number) {
    this.lane = claimed.lane
    this.fence = claimed.fence
    this.cursor = claimed.cursor
    this.ahead = claimed.cursor
    this.untilMs = untilMs
    this.againAtMs = performance.now() + (claimed.againMs ?? Number.POSITIVE_INFINITY)
  }

  /** Back to the cursor: what was read since is dropped. */
  rewind(): void {
    this.ahead = this.cursor
    this.news = true
  }

  settled(to: bigint, beyond: readonly bigint[]): void {
    this.cursor = to
    for (const position of this.beyond) if (position <= to) this.beyond.delete(position)
    for (const position of beyond) this.beyond.add(position)
  }
}
