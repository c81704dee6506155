/**
 * Sends the newest states of a lane once more, after a take-over: a late call of the former owner may have
 * overwritten them. The lane is not read meanwhile. Nothing is settled: all of it was delivered before.
 */
import { againDone, againEvents } from '../flow/again.ts'
import { readSlice } from '../flow/replay.ts'
import type { Entry } from '../flow/result.ts'
import type { Outcome } from '../sinks/sink.ts'
import { judge } from './judge.ts'
import type { LeasedLane } from './lane.ts'
import type { RoundParts } from './rounds.ts'
import type { Station } from './station.ts'

/** Pause before the next try, if the destination did not take it. */
const tryAgainMs = 1_000

export class Again {
  readonly #station: Station
  readonly #parts: Omit<RoundParts, 'parking'>

  constructor(station: Station, parts: Omit<RoundParts, 'parking'>) {
    this.#station = station
    this.#parts = parts
  }

  /** When the next lane is due; infinite: none is. */
  get atMs(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...this.#parts.leases.free.map(({ againAtMs }) => againAtMs))
  }

  /** Sends one lane that is due. Nothing of that lane is in flight. */
  async send(): Promise<void> {
    const { db, subscription, owner } = this.#station
    const now = performance.now()
    const lane = this.#parts.leases.free.find(({ againAtMs }) => againAtMs <= now)
    if (lane === undefined) return
    lane.againAtMs = now + tryAgainMs
    this.#parts.leases.busy()
    const rows = 2 * subscription.batch.count
    const { positions, ids, hashes } = await againEvents(db, subscription.name, lane.lane, rows)
    for (let at = 0; at < positions.length; ) {
      const part = { positions: positions.slice(at), ids: ids.slice(at), hashes: hashes.slice(at) }
      const sent = await this.#slice(lane, part)
      if (sent === 0) return
      at += sent
    }
    await againDone(db, subscription.name, owner, lane)
    lane.againAtMs = Number.POSITIVE_INFINITY
  }

  /** How many positions are done; 0: try again later. */
  async #slice(lane: LeasedLane, part: Parameters<typeof readSlice>[3]): Promise<number> {
    const { db, subscription, poller } = this.#station
    const { breaker, sending } = this.#parts
    const { count, bytes } = subscription.batch
    const some = { positions: part.positions.slice(0, count), ids: part.ids.slice(0, count), hashes: part.hashes }
    const at = { lane: lane.lane, fence: lane.fence, sieved: lane.cursor, bytes }
    const slice = await readSlice(db, this.#station, at, { ...some, hashes: part.hashes.slice(0, count) })
    if (slice === undefined) return 0
    // Blocked events are sent later anyway.
    const going = slice.entries.filter((entry) => entry.mark !== 'blocked')
    const ended = (handle: string) => poller?.wait(handle).ended ?? Promise.resolve(undefined)
    const result = await sending.call(going, ended)
    const well = await judge(this.#station, breaker, result, going.length > 0)
    if (!well || !going.every((entry) => isTaken(result.get(entry)))) return 0
    const last = slice.entries.at(-1)
    return slice.through === undefined || last === undefined ? some.positions.length : indexAfter(some.positions, last)
  }
}

/** The destination has it, or refused it for good. */
function isTaken(outcome: Outcome | 'blocked' | undefined): boolean {
  if (outcome === undefined || outcome === 'blocked') return false
  return outcome.outcome === 'delivered' || outcome.outcome === 'superseded' || outcome.outcome === 'rejected'
}

function indexAfter(positions: readonly string[], { event }: Entry): number {
  return positions.filter((position) => BigInt(position) <= event.position).length
}
