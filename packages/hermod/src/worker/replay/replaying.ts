/**
 * The replay side of one claim loop: between live batches, one lane at a time sends a slice of what lies
 * between its replay cursor and its live cursor. While a slice is under way its lane is not read, so order
 * holds. Slices are short, so that live events do not wait for long. While the destination works on a parked
 * slice, another lane sends its own.
 *
 *   look for a window (the lane goes on) ──▶ slice: read, send, settle (the lane waits) ──▶ …
 *                                   ▲                         │
 *                                   └──── window used up ─────┘   until the two cursors meet
 */

import {
  enlistAgain,
  type ReplayLane,
  readSlice,
  replayCursor,
  replayWindow,
  settleReplay,
  type Window,
} from '../../flow/replay.ts'
import type { Entry } from '../../flow/result.ts'
import { Result } from '../../flow/result.ts'
import { type Settlement, settlement } from '../../flow/settle.ts'
import type { Outcome } from '../../sinks/sink.ts'
import { notify } from '../../telemetry.ts'
import type { Breaker } from '../breaker.ts'
import { judge } from '../judge.ts'
import type { LeasedLane } from '../lane.ts'
import type { Leases } from '../leases.ts'
import { tellRetries } from '../report.ts'
import { nextDelayMs } from '../retry.ts'
import { deliveredIn } from '../round.ts'
import type { RoundParts } from '../rounds.ts'
import type { Sending } from '../sending.ts'
import { settleRefused, type WriteLanes } from '../set-aside.ts'
import type { Station } from '../station.ts'
import { Strikes } from '../strikes.ts'
import type { Wake } from '../wake.ts'
import { Pace } from './pace.ts'

/** Rows of the log looked at per window: a bound on the work of one statement. */
const windowRows = 2_000

type Replay = NonNullable<ReturnType<Station['state']>['replay']>
type Part = Pick<Window, 'positions' | 'ids' | 'hashes'>

/** Events of one lane on their way. */
interface Slice {
  /** The loop looked for live events meanwhile: it must look again. */
  missed: boolean
  readonly startedMs: number
  /** How long the destination worked on it. */
  parkedMs: number
  ended: Promise<void>
}

/** How far the replay of a leased lane is. */
interface Place {
  readonly journey: bigint
  /** Settled up to here; unknown at first. */
  at: bigint | undefined
  /** Events above this position were delivered since the replay began and are not sent again. */
  stop: bigint | undefined
  window: Window | undefined
  /** Slices of the window already sent. */
  used: number
  met: boolean
  readonly strikes: Strikes
}

export class Replaying {
  readonly #station: Station
  readonly #leases: Leases
  readonly #sending: Sending
  readonly #breaker: Breaker
  readonly #wake: Wake
  readonly #pace: Pace
  readonly #places = new WeakMap<LeasedLane, Place>()
  #begun = 0
  /** Under way; all but the active one are parked. */
  readonly #slices = new Set<Slice>()
  #active: Slice | undefined

  constructor(station: Station, { leases, sending, breaker }: Omit<RoundParts, 'parking'>, wake: Wake) {
    this.#station = station
    this.#leases = leases
    this.#sending = sending
    this.#breaker = breaker
    this.#wake = wake
    this.#pace = new Pace(station, wake, () => sending.liveAtMs)
  }

  /** This loop may still have something to replay. */
  get open(): boolean {
    const { replay, mode, held } = this.#station.state()
    if (replay === undefined || mode !== 'live' || held) return false
    return this.#slices.size > 0 || this.#lanes(replay).length > 0
  }

  /** Milliseconds until a slice may start; infinite while one is being sent, or if none is left. */
  get waitMs(): number {
    const { replay } = this.#station.state()
    if (replay === undefined || this.#active !== undefined || !this.open) return Number.POSITIVE_INFINITY
    return this.#lanes(replay).length === 0 ? Number.POSITIVE_INFINITY : this.#pace.waitMs(replay)
  }

  /** The loop looks for live events, and skips the lanes whose slices are under way. */
  looked(): void {
    for (const slice of this.#slices) slice.missed = true
  }

  /** Called between live rounds: nothing of these lanes is in flight or read ahead. */
  begin(): void {
    const { replay } = this.#station.state()
    if (replay === undefined) return
    const lanes = this.#lanes(replay)
    const lane = lanes[this.#begun++ % lanes.length]
    if (lane !== undefined) this.#start((slice) => this.#advance(replay, lane, slice))
  }

  /** The breaker is open and there is no live event to probe with: probes with one event of a replay. */
  async probe(): Promise<boolean> {
    const { replay } = this.#station.state()
    const [lane] = replay === undefined ? [] : this.#lanes(replay)
    if (replay === undefined || lane === undefined || this.#slices.size > 0) return false
    const place = await this.#find(replay, lane)
    if (place.met || place.window === undefined || !(await this.#breaker.mayProbe())) return false
    await this.#start((slice) => this.#send(replay, lane, place, 1, slice)).ended
    return true
  }

  /** Resolves when the slice under way has ended. */
  async end(): Promise<void> {
    await Promise.all([...this.#slices].map(({ ended }) => ended))
  }

  /** Its loop has ended. */
  forget(): void {
    this.#pace.end()
  }

  #lanes({ journey }: Replay): LeasedLane[] {
    return this.#leases.lanes.filter((lane) => {
      const place = this.#places.get(lane)
      // What was delivered beyond the cursor is newer: first the cursor has to pass it.
      const settled = lane.parked === undefined && lane.beyond.size === 0
      return settled && (place?.journey !== journey || !place.met)
    })
  }

  #start(work: (slice: Slice) => Promise<void>): Slice {
    const slice: Slice = { missed: false, startedMs: performance.now(), parkedMs: 0, ended: Promise.resolve() }
    this.#pace.begun()
    this.#slices.add(slice)
    this.#active = slice
    slice.ended = work(slice)
      .catch((error) => {
        const { listener, subscription } = this.#station
        notify(listener, 'error', { during: 'replay', error, subscription: subscription.name })
        this.#pace.failed()
      })
      .finally(() => this.#ended(slice))
    return slice
  }

  #ended(slice: Slice): void {
    this.#slices.delete(slice)
    this.#pause(slice)
    if (!this.open) this.#pace.done()
    if (slice.missed) this.#wake.wake()
    else this.#wake.stir()
  }

  /** It is no longer being sent: another may begin. */
  #pause(slice: Slice): void {
    if (this.#active !== slice) return
    this.#active = undefined
    this.#pace.ended()
  }

  /** Waits for the end of a parked call. */
  async #parked(slice: Slice, handle: string): Promise<Outcome | undefined> {
    const parkedAtMs = performance.now()
    this.#pace.rest(parkedAtMs - slice.startedMs)
    this.#pause(slice)
    this.#pace.done()
    const outcome = await this.#station.poller?.wait(handle).ended
    slice.parkedMs += performance.now() - parkedAtMs
    return outcome
  }

  async #advance(replay: Replay, lane: LeasedLane, slice: Slice): Promise<void> {
    const known = this.#places.get(lane)
    if (known?.journey === replay.journey && known.window !== undefined) {
      const count = this.#pace.allowance(replay)
      if (count > 0) await this.#send(replay, lane, known, count, slice)
    } else {
      const startedMs = performance.now()
      await this.#find(replay, lane)
      this.#pace.rest(performance.now() - startedMs)
    }
  }

  /** Reads where the lane stands and what to send next, while live delivery of the lane continues. */
  async #find(replay: Replay, lane: LeasedLane): Promise<Place> {
    const { db, subscription } = this.#station
    const { journey } = replay
    let place = this.#places.get(lane)
    if (place?.journey !== journey || place.at === undefined) {
      const found = await replayCursor(db, subscription.name, journey, lane.lane)
      place = {
        journey,
        at: found?.at,
        stop: found?.stop,
        met: found === undefined,
        window: undefined,
        used: 0,
        strikes: new Strikes(),
      }
      this.#places.set(lane, place)
    }
    if (!place.met && place.window === undefined) await this.#look(replay, lane, place, place.at as bigint)
    return place
  }

  async #look(replay: Replay, lane: LeasedLane, place: Place, after: bigint): Promise<void> {
    const { db, subscription } = this.#station
    const plan = bounded(replay.plan, place.stop)
    const range = { after, upTo: lane.cursor, rowsMax: windowRows }
    place.window = await replayWindow(db, subscription.name, lane.lane, plan, range)
    place.used = 0
  }

  async #send(replay: Replay, lane: LeasedLane, place: Place, count: number, slice: Slice): Promise<void> {
    const startedMs = performance.now()
    lane.parked = 'waiting'
    try {
      this.#leases.busy()
      // The lane is not read now: what was delivered since the window was read is looked at too.
      while (this.#left(place) === 0 && (place.window as Window).through < lane.cursor)
        await this.#look(replay, lane, place, (place.window as Window).through)
      const sent = await this.#slice(replay, lane, place, count, slice)
      this.#pace.took(sent, performance.now() - startedMs, slice.parkedMs)
    } finally {
      lane.parked = undefined
    }
  }

  #left({ window, used }: Place): number {
    return (window?.positions.length ?? 0) - used
  }

  async #slice(replay: Replay, lane: LeasedLane, place: Place, count: number, under: Slice): Promise<number> {
    const window = place.window as Window
    const part = partOf(window, place.used, count)
    const last = place.used + part.positions.length >= window.positions.length
    const to = last ? window.through : BigInt(part.positions.at(-1) as string)
    if (this.#station.subscription.ledger) return this.#enlist(replay, lane, place, part, to)
    const { batch } = this.#station.subscription
    const at: ReplayLane = { ...where(lane), sieved: window.sieved, bytes: batch.bytes }
    const slice =
      part.positions.length === 0
        ? { entries: [], through: undefined }
        : await readSlice(this.#station.db, this.#station, at, part)
    if (slice === undefined) {
      this.#places.delete(lane)
      await this.#station.refresh()
      return 0
    }
    const cut = slice.through !== undefined && slice.through < BigInt(part.positions.at(-1) ?? 0)
    return this.#deliver(replay, lane, place, under, {
      entries: slice.entries,
      to: cut ? (slice.through as bigint) : to,
      looked: cut ? indexAfter(part.positions, slice.through as bigint) : part.positions.length,
    })
  }

  async #deliver(
    replay: Replay,
    lane: LeasedLane,
    place: Place,
    slice: Slice,
    { entries, to, looked }: { entries: Entry[]; to: bigint; looked: number },
  ): Promise<number> {
    const startedMs = performance.now()
    const { random, subscription } = this.#station
    const known = new Result()
    for (const entry of entries) if (entry.mark === 'blocked') known.set(entry, 'blocked')
    const going = entries.filter((entry) => entry.mark !== 'blocked')
    const result = await this.#sending.call(going, (handle) => this.#parked(slice, handle))
    result.add(known)
    place.strikes.note(going, result, this.#station.passes + deliveredIn(result))
    const delay = (attempt: number, afterMs: number | undefined) =>
      nextDelayMs(subscription.retry, attempt, afterMs, random)
    const range = { ...where(lane), from: place.at as bigint, through: to }
    const settled = settlement(subscription, { ...range, fresh: entries, due: [] }, result, delay)
    settled.superseded += looked - entries.length
    await this.#settle(replay, lane, place, settled, startedMs)
    if (!(await judge(this.#station, this.#breaker, result, going.length > 0))) this.#pace.failed()
    return going.length
  }

  async #settle(
    { journey }: Replay,
    lane: LeasedLane,
    place: Place,
    settled: Settlement,
    startedMs: number,
  ): Promise<void> {
    const { db, subscription, owner, workerName: worker } = this.#station
    const elapsedMs = performance.now() - startedMs
    const call = { startedAgoMs: elapsedMs, durationMs: elapsedMs, worker, rehearsed: false }
    // After a lost answer or a refusal the place is read again.
    this.#places.delete(lane)
    let met: boolean | undefined
    const write: WriteLanes = async (to, lanes) => {
      for (const one of lanes) met = await settleReplay(to, subscription, owner, journey, one, call)
      return new Set(met === undefined ? [] : [lane.lane])
    }
    await write(db, [settled]).catch((error) => settleRefused(this.#station, settled, error, write))
    if (met === undefined) return this.#station.refresh()
    tellRetries(this.#station, settled)
    this.#moved(lane, place, settled.to, met)
  }

  /** Drops the part of the window that is done. */
  #moved(lane: LeasedLane, place: Place, to: bigint, met: boolean): void {
    const window = place.window as Window
    const used = indexAfter(window.positions, to)
    const over = used >= window.positions.length && to >= window.through
    Object.assign(place, { at: to, met, used: over ? 0 : used })
    if (over) place.window = undefined
    this.#places.set(lane, place)
  }

  async #enlist({ journey }: Replay, lane: LeasedLane, place: Place, part: Part, to: bigint): Promise<number> {
    const { db, subscription, owner } = this.#station
    this.#places.delete(lane)
    const range = { ...where(lane), from: place.at as bigint, to }
    const met = await enlistAgain(db, subscription, owner, journey, range, part)
    if (met === undefined) await this.#station.refresh()
    else this.#moved(lane, place, to, met)
    return part.positions.length
  }
}

function where({ lane, fence }: LeasedLane): { lane: number; fence: bigint } {
  return { lane, fence }
}

function bounded(plan: object, stop: bigint | undefined): object {
  const { to } = plan as { to?: string }
  if (stop === undefined || (to !== undefined && BigInt(to) < stop)) return plan
  return { ...plan, to: String(stop) }
}

function partOf({ positions, ids, hashes }: Window, from: number, count: number): Part {
  const to = from + count
  return {
    positions: positions.slice(from, to),
    ids: ids.slice(from, to),
    hashes: hashes.slice(from, to),
  }
}

/** How many of the ascending positions are at or below this one. */
function indexAfter(positions: readonly string[], position: bigint): number {
  const at = positions.findIndex((each) => BigInt(each) > position)
  return at === -1 ? positions.length : at
}
