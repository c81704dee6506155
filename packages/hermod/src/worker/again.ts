/**
 * Sends the newest states of a lane once more, after a take-over: a late call of the former owner may have
 * overwritten them. The lane is not read meanwhile. Nothing is settled: all of it was delivered before.
 */
import { type AgainEvents, againDone, againEvents } from '../flow/again.ts'
import { readSlice } from '../flow/replay.ts'
import type { Entry, Result } from '../flow/result.ts'
import type { Outcome } from '../sinks/sink.ts'
import { notify } from '../telemetry.ts'
import { judge } from './judge.ts'
import type { LeasedLane } from './lane.ts'
import { nextDelayMs } from './retry.ts'
import type { RoundParts } from './rounds.ts'
import { batchesUnsettledMax } from './settler.ts'
import type { Station } from './station.ts'

/** Pause before the next try, if the destination could not be used. */
const awayMs = 1_000

/** What a destination has not taken yet. */
interface Left {
  /** Hashes of aggregates; undefined: all that the note speaks of. */
  readonly of: ReadonlySet<string> | undefined
  readonly attempts: number
}

export class Again {
  readonly #station: Station
  readonly #parts: Omit<RoundParts, 'parking'>
  readonly #left = new WeakMap<LeasedLane, Left>()
  #notBeforeMs = 0

  constructor(station: Station, parts: Omit<RoundParts, 'parking'>) {
    this.#station = station
    this.#parts = parts
  }

  /** When the next lane is due; infinite: none is. Between two lanes live events get as much time as the first one took. */
  get atMs(): number {
    const dueAtMs = Math.min(Number.POSITIVE_INFINITY, ...this.#lanes.map(({ againAtMs }) => againAtMs))
    return Math.max(dueAtMs, this.#notBeforeMs)
  }

  /** What was delivered beyond the cursor is newer than what is known here: first the cursor has to pass it. */
  get #lanes(): LeasedLane[] {
    return this.#parts.leases.free.filter(({ beyond }) => beyond.size === 0)
  }

  /** Sends one lane that is due. Nothing of that lane is in flight. */
  async send(): Promise<void> {
    const now = performance.now()
    const lane = this.#lanes.find(({ againAtMs }) => againAtMs <= now)
    if (lane === undefined) return
    lane.againAtMs = now + awayMs
    this.#parts.leases.busy()
    await this.#lane(lane).finally(() => {
      this.#notBeforeMs = performance.now() + (performance.now() - now)
    })
  }

  async #lane(lane: LeasedLane): Promise<void> {
    const { db, subscription } = this.#station
    const rows = batchesUnsettledMax * subscription.batch.count
    const { of, attempts } = this.#left.get(lane) ?? { of: undefined, attempts: 0 }
    // Read each time: meanwhile newer states may have been delivered.
    const events = await againEvents(db, subscription.name, lane.lane, rows)
    const refused = await this.#sendAll(lane, of === undefined ? events : only(events, of))
    if (refused === undefined) return
    if (refused.size === 0) await this.#done(lane)
    else await this.#refused(lane, refused, attempts + 1)
  }

  /** Hashes that were not taken; undefined: the destination cannot be used now. */
  async #sendAll(lane: LeasedLane, { positions, ids, hashes }: AgainEvents): Promise<Set<string> | undefined> {
    const refused = new Set<string>()
    for (let at = 0; at < positions.length; ) {
      const to = at + this.#station.subscription.batch.count
      const part = { positions: positions.slice(at, to), ids: ids.slice(at, to), hashes: hashes.slice(at, to) }
      const sent = await this.#slice(lane, part, refused)
      if (sent === undefined) return undefined
      at += sent
    }
    return refused
  }

  /** How many positions are done. */
  async #slice(lane: LeasedLane, part: AgainEvents, refused: Set<string>): Promise<number | undefined> {
    const { db, subscription } = this.#station
    const at = { lane: lane.lane, fence: lane.fence, sieved: lane.cursor, bytes: subscription.batch.bytes }
    const slice = await readSlice(db, this.#station, at, part)
    if (slice === undefined) return undefined
    // What is blocked or has a row of its own is sent later anyway.
    const going = slice.entries.filter(({ mark }) => mark === null || mark === 'dead')
    const result = await this.#call(going)
    const well = await judge(this.#station, this.#parts.breaker, result, going.length > 0)
    if (!well || this.#station.abort.aborted || !this.#parts.leases.lanes.includes(lane)) return undefined
    // A task that takes longer than a call may is an attempt like any other: sent each second, tasks would only pile up.
    for (const entry of going) if (!isTaken(result.get(entry))) refused.add(hashOf(entry, part))
    const last = slice.entries.at(-1)
    return slice.through === undefined || last === undefined ? part.positions.length : indexAfter(part, last)
  }

  /** A task is waited for as long as a call may take. */
  #call(going: readonly Entry[]): Promise<Result> {
    const { poller, subscription } = this.#station
    return this.#parts.sending.call(going, async (handle) => {
      const waiting = poller?.wait(handle)
      const limit = setTimeout(() => waiting?.forget(), subscription.callMs)
      return waiting?.ended.finally(() => clearTimeout(limit))
    })
  }

  async #done(lane: LeasedLane): Promise<void> {
    const { db, subscription, owner } = this.#station
    await againDone(db, subscription.name, owner, lane)
    lane.againAtMs = Number.POSITIVE_INFINITY
    this.#left.delete(lane)
  }

  async #refused(lane: LeasedLane, of: ReadonlySet<string>, attempts: number): Promise<void> {
    const { subscription, random, listener } = this.#station
    if (attempts < subscription.retry.attemptsMax) {
      this.#left.set(lane, { of, attempts })
      lane.againAtMs = performance.now() + nextDelayMs(subscription.retry, attempts, undefined, random)
      return
    }
    const message = `${subscription.name}, lane ${lane.lane}: ${of.size} aggregates were not taken a second time`
    notify(listener, 'warning', { code: 'HMD_SECOND_SEND_REFUSED', message, subscription: subscription.name })
    await this.#done(lane)
  }
}

function only({ positions, ids, hashes }: AgainEvents, of: ReadonlySet<string>): AgainEvents {
  const kept = (list: readonly string[]) => list.filter((_, index) => of.has(hashes[index] as string))
  return { positions: kept(positions), ids: kept(ids), hashes: kept(hashes) }
}

/** The destination has it, or refused it for good. */
function isTaken(outcome: Outcome | 'blocked' | undefined): boolean {
  if (outcome === undefined || outcome === 'blocked') return false
  return outcome.outcome === 'delivered' || outcome.outcome === 'superseded' || outcome.outcome === 'rejected'
}

function hashOf({ event }: Entry, { positions, hashes }: AgainEvents): string {
  return hashes[positions.indexOf(String(event.position))] as string
}

function indexAfter({ positions }: AgainEvents, { event }: Entry): number {
  return positions.filter((position) => BigInt(position) <= event.position).length
}
