/** A lane this worker holds: where it is settled, how far it is read, and what needs no second send. */
import type { ClaimedLane } from '../flow/claim.ts'
import { Strikes } from './strikes.ts'

export class LeasedLane {
  readonly lane: number
  readonly fence: bigint
  /** On the monotonic clock: certainly ours until then. */
  untilMs: number
  /** Settled up to here. */
  cursor: bigint
  /** Read up to here; above the cursor while a batch is in flight. */
  ahead: bigint
  /** Delivered beyond the cursor, because an earlier event of the lane could not be. */
  readonly beyond = new Set<bigint>()
  /** The limit was met at the last read. */
  full = false
  /** Its destination works on a task; `recorded`: whoever owns the lane next can ask for it. */
  parked: 'waiting' | 'recorded' | undefined
  /** What a former owner had parked is known. */
  asked = false
  /** On the monotonic clock: what a former owner may have sent late is sent again then (again.ts). */
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

  /** Back to what is settled: what was read since is forgotten. */
  rewind(): void {
    this.ahead = this.cursor
  }

  settled(to: bigint, beyond: readonly bigint[]): void {
    this.cursor = to
    for (const position of this.beyond) if (position <= to) this.beyond.delete(position)
    for (const position of beyond) this.beyond.add(position)
  }
}
