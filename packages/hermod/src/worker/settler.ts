/**
 * Settles what one claim loop has delivered, beside its next reads and calls: one statement at a time.
 * Small batches that passed are gathered for a moment and settled together.
 *
 * Before a call begins, at most one batch is unsettled; with the call itself that makes two. A crash
 * repeats no more than that.
 */
import { isConnectionError, isLockTimeout } from '../database.ts'
import { type SettledBatch, type Settlement, settle } from '../flow/settle.ts'
import { notify } from '../telemetry.ts'
import type { LeasedLane } from './lane.ts'
import { tellRetries } from './report.ts'
import type { Round } from './round.ts'
import { pause, settleApart, type WriteLanes } from './set-aside.ts'
import type { Station } from './station.ts'
import { whenUnlocked } from './when-unlocked.ts'

/** Two batches of a lane at most are delivered or under way and not settled. */
export const batchesUnsettledMax = 2
/** Longest time a delivered batch may stay unsettled to be settled with others. */
const gatherMs = 20
/** A larger batch does not wait: then the statement is a small part of the cost. */
const gatheredMax = 500
/** A batch that cannot be settled is sent again after this pause. */
const refusedPauseMs = 2_000

/** A delivered batch that the database does not know yet. */
export interface Unsettled {
  readonly round: Round
  readonly lanes: readonly Settlement[]
  readonly endedMs: number
}

export class Settler {
  readonly #station: Station
  #waiting: Unsettled | undefined
  #timer: NodeJS.Timeout | undefined
  #writing: { readonly events: number; readonly done: Promise<void> } | undefined
  /** Lanes whose rows somebody holds, until what was delivered of them is settled. */
  readonly #locked = new Map<LeasedLane, Promise<void>>()
  /** An answer was lost or a settle refused: nothing may be assumed. */
  doubt = false

  constructor(station: Station) {
    this.#station = station
  }

  /** Resolves when a call may begin: at most one batch is unsettled. */
  async room(): Promise<void> {
    const { count } = this.#station.subscription.batch
    while (this.#unsettled > count) await this.#write()
  }

  /** Resolves when everything delivered so far is settled. */
  async all(): Promise<void> {
    while (this.#writing !== undefined || this.#waiting !== undefined) await this.#write()
  }

  /** `plain`: all of it passed. Anything else is written before the next read, which must see it. */
  async add(unsettled: Unsettled, plain: boolean): Promise<void> {
    const changed = withChanges(unsettled)
    if (changed !== undefined) this.#waiting = following(this.#waiting, changed)
    if (!plain) return this.all()
    if (this.#waiting === undefined) return
    if (eventsIn(this.#waiting) >= this.#gathered) this.#write()
    else this.#timer ??= setTimeout(() => this.#write(), gatherMs)
  }

  get #gathered(): number {
    return Math.min(gatheredMax, this.#station.subscription.batch.count)
  }

  get #unsettled(): number {
    return (this.#writing?.events ?? 0) + (this.#waiting === undefined ? 0 : eventsIn(this.#waiting))
  }

  /** Writes what waits, once the write in flight has finished. */
  async #write(): Promise<void> {
    if (this.#writing !== undefined) return this.#writing.done
    const next = this.#waiting
    this.#waiting = undefined
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (next === undefined) return
    const done = this.#settle(next).finally(() => {
      this.#writing = undefined
      if (this.#waiting !== undefined && eventsIn(this.#waiting) >= this.#gathered) this.#write()
    })
    this.#writing = { events: eventsIn(next), done }
    return done
  }

  async #settle(unsettled: Unsettled): Promise<void> {
    const { db, subscription, owner, workerName } = this.#station
    // An earlier settle was refused or lost, so the cursor is not where this batch begins.
    if (this.doubt) return
    const { call, lanes } = batchOf(unsettled, workerName)
    const write: WriteLanes = (to, some) => settle(to, subscription, owner, { lanes: some, call })
    try {
      this.#settled(unsettled, await write(db, lanes))
    } catch (error) {
      await this.#failed(unsettled, error, write)
    }
  }

  /** What the database refuses is written again in parts. After a lost connection the loop is in doubt. */
  async #failed(unsettled: Unsettled, error: unknown, write: WriteLanes): Promise<void> {
    this.#tell(error)
    try {
      if (isConnectionError(error)) throw error
      const { settled, refused } = await settleApart(this.#station, unsettled.lanes, error, write)
      this.#settled({ ...unsettled, lanes: unsettled.lanes.filter(({ lane }) => !refused.has(lane)) }, settled)
      const others = [...refused].filter(([lane, why]) => !isLockTimeout(why) || !this.#wait(unsettled, lane, write))
      for (const [, why] of others) this.#tell(why)
      if (others.length === 0) return
      this.doubt = true
      await pause(refusedPauseMs, this.#station.abort)
    } catch (again) {
      if (again !== error) this.#tell(again)
      this.doubt = true
    }
  }

  /** Somebody holds the row of this lane: what was delivered of it waits for that, and the other lanes go on. */
  #wait(unsettled: Unsettled, lane: number, write: WriteLanes): boolean {
    const leased = unsettled.round.batches.find((batch) => batch.lane.lane === lane)?.lane
    const [one] = unsettled.lanes.filter((settlement) => settlement.lane === lane)
    if (leased === undefined || one === undefined) return false
    leased.parked = 'waiting'
    const done = (this.#locked.get(leased) ?? Promise.resolve())
      .then(() => whenUnlocked(this.#station, leased, () => write(this.#station.db, [one])))
      .then((settled) => this.#settled({ ...unsettled, lanes: [one] }, settled))
      .catch((error) => {
        this.#tell(error)
        this.doubt = true
      })
      .finally(() => {
        if (this.#locked.get(leased) !== done) return
        this.#locked.delete(leased)
        leased.parked = undefined
        leased.rewind()
      })
    this.#locked.set(leased, done)
    return true
  }

  #tell(error: unknown): void {
    const { listener, subscription } = this.#station
    notify(listener, 'error', { during: 'settle', error, subscription: subscription.name })
  }

  /** A lane missing from the answer was taken over, or its cursor is elsewhere. */
  #settled({ round, lanes }: Unsettled, settled: ReadonlySet<number>): void {
    const leased = new Map(round.batches.map(({ lane }) => [lane.lane, lane]))
    for (const one of lanes) {
      if (!settled.has(one.lane)) {
        this.doubt = true
        continue
      }
      leased.get(one.lane)?.settled(one.to, one.beyond)
      tellRetries(this.#station, one)
    }
  }
}

function eventsIn({ lanes }: Unsettled): number {
  return lanes.reduce((sum, { sent }) => sum + sent, 0)
}

/** The lanes the database has to know about. The others only note what was delivered beyond the cursor. */
function withChanges({ round, lanes, endedMs }: Unsettled): Unsettled | undefined {
  const leased = new Map(round.batches.map(({ lane }) => [lane.lane, lane]))
  const changed = lanes.filter(isChange)
  for (const one of lanes) if (!isChange(one)) leased.get(one.lane)?.settled(one.to, one.beyond)
  return changed.length === 0 ? undefined : { round, lanes: changed, endedMs }
}

/** Joins two consecutive batches into one. */
function following(before: Unsettled | undefined, next: Unsettled): Unsettled {
  if (before === undefined) return next
  const lanes = new Map(before.lanes.map((one) => [one.lane, one]))
  for (const one of next.lanes) {
    const known = lanes.get(one.lane)
    lanes.set(one.lane, known === undefined ? one : joined(known, one))
  }
  const batches = [...before.round.batches, ...next.round.batches]
  const round = { ...next.round, batches, startedMs: before.round.startedMs }
  return { round, lanes: [...lanes.values()], endedMs: next.endedMs }
}

/**
 * `before` passed as a whole, so it has no rows that could get lost here. Both have the same fence: lanes change hands
 * when everything is settled.
 */
function joined(before: Settlement, next: Settlement): Settlement {
  return {
    ...next,
    from: before.from,
    sent: before.sent + next.sent,
    delivered: before.delivered + next.delivered,
    superseded: before.superseded + next.superseded,
  }
}

/** All of it passed, and there is nothing to write but the cursor. */
export function isPlain({ failed, rows, blocked, done, beyond }: Settlement): boolean {
  return failed + rows.length + blocked.length + done.length + beyond.length === 0
}

function isChange({ from, to, rows, blocked, done }: Settlement): boolean {
  return to > from || rows.length + done.length + blocked.length > 0
}

/** The argument of the statement. */
function batchOf({ round, lanes, endedMs }: Unsettled, worker: string): SettledBatch {
  const { startedMs, rehearsed } = round
  const [startedAgoMs, durationMs] = [performance.now() - startedMs, endedMs - startedMs]
  return { lanes, call: { startedAgoMs, durationMs, worker, rehearsed } }
}
