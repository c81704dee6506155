/** A lane this worker holds: where it is settled, how far it is read, and what needs no second send. */
import type { ClaimedLane, Entry, LaneRead } from '../flow/claim.ts'
import { aggregateKey } from '../flow/settle.ts'

/** Unavailable this often alone, while others passed: the event is the reason, not the destination. */
const strikesMax = 5
/** Batches that may be unsettled when the next one is read: one being settled, one being sent. */
const flightsMax = 2

/** What a batch did that the database may not show yet. */
interface Flight {
  /** Aggregates with rows that were sent again, and perhaps what waited behind them. */
  readonly due: ReadonlySet<string>
  /** Aggregates whose next event has to wait. */
  failed: ReadonlySet<string>
  /** Aggregates with a new dead letter that holds nothing back. */
  dead: ReadonlySet<string>
}

const NOTHING: ReadonlySet<string> = new Set()

export class HeldLane {
  readonly lane: number
  readonly fence: bigint
  /** On the monotonic clock: certainly ours until then. */
  untilMs: number
  /** Settled up to here. */
  cursor: bigint
  /** Read up to here; ahead of the cursor while a batch is in flight. */
  ahead: bigint
  /** Delivered beyond the cursor, because an earlier event of the lane could not be. */
  readonly beyond = new Set<bigint>()
  /** The limit was met at the last read. */
  full = false
  /** Its destination works on a task; `recorded`: whoever owns the lane next can ask for it. */
  parked: 'waiting' | 'recorded' | undefined
  /** What a former owner had parked is known. */
  asked = false
  #flights: Flight[] = []
  #strike = { position: -1n, count: 0, passes: 0 }

  constructor(claimed: ClaimedLane, untilMs: number) {
    this.lane = claimed.lane
    this.fence = claimed.fence
    this.cursor = claimed.cursor
    this.ahead = claimed.cursor
    this.untilMs = untilMs
  }

  /** Back to what is settled: what was read ahead is forgotten. */
  rewind(): void {
    this.ahead = this.cursor
    this.#flights = []
  }

  /** Everything sent is settled: the next read sees it. */
  landed(): void {
    this.#flights = []
  }

  /** A batch goes out. */
  begin({ due }: LaneRead): void {
    const sent = new Set(due.map(aggregateKey))
    const flight = { due: sent, failed: NOTHING, dead: NOTHING }
    this.#flights = [...this.#flights, flight].slice(-flightsMax)
  }

  /** It came back. */
  ended(failed: ReadonlySet<string>, dead: ReadonlySet<string>): void {
    const flight = this.#flights.at(-1)
    if (flight !== undefined) Object.assign(flight, { failed, dead })
  }

  /** What was read ahead, seen again with what is known by now. */
  refresh(read: LaneRead): LaneRead {
    if (this.#flights.length === 0) return read
    const quiet = this.#flights.every(({ failed, dead }) => failed.size + dead.size === 0)
    const fresh = quiet ? read.fresh : read.fresh.map((entry) => this.#marked(entry))
    const due = read.due.filter((entry) => !this.#flights.some((flight) => flight.due.has(aggregateKey(entry))))
    return { ...read, fresh, due }
  }

  #marked(entry: Entry): Entry {
    const key = aggregateKey(entry)
    if (this.#flights.some(({ failed }) => failed.has(key))) return { ...entry, mark: 'held' }
    if (entry.mark === null && this.#flights.some(({ dead }) => dead.has(key))) return { ...entry, mark: 'dead' }
    return entry
  }

  settled(to: bigint, beyond: readonly bigint[]): void {
    this.cursor = to
    for (const position of this.beyond) if (position <= to) this.beyond.delete(position)
    for (const position of beyond) this.beyond.add(position)
  }

  /** This event alone was unavailable. True: too often, while `passes` others went through. */
  strike(position: bigint, passes: number): boolean {
    if (this.#strike.position !== position) this.#strike = { position, count: 0, passes: -1 }
    if (passes > this.#strike.passes) this.#strike.count++
    this.#strike.passes = passes
    if (this.#strike.count < strikesMax) return false
    this.#strike.count = 0
    return true
  }
}
