/**
 * One claim loop: claim → read → deliver → settle, over and over. The next batch is read while one
 * is being delivered, and settled while the next is; what was read ahead is looked at again with
 * what has failed since.
 *
 *        read n+1                 read n+2
 *   ────deliver n────┐   ────deliver n+1────┐
 *                    └─settle n             └─settle n+1
 */
import { setTimeout as pause } from 'node:timers/promises'
import { isConnectionError } from '../database.ts'
import { HermodError } from '../errors.ts'
import { type Entry, read } from '../flow/claim.ts'
import { deliver } from '../flow/deliver.ts'
import { enlist, sending } from '../flow/ledger.ts'
import { Result } from '../flow/result.ts'
import { type Settlement, settle, settlement } from '../flow/settle.ts'
import { notify } from '../telemetry.ts'
import {
  aftermath,
  type Batch,
  moved,
  oneOf,
  passedIn,
  rehearse,
  spendPoison,
  toSend,
  troubleIn,
} from './batch.ts'
import { Breaker } from './breaker.ts'
import type { HeldLane } from './lane.ts'
import { Leases } from './leases.ts'
import { tellCall, tellRetries } from './report.ts'
import { nextDelayMs } from './retry.ts'
import type { Station } from './station.ts'
import { Wake } from './wake.ts'

const errorPauseMs = 1_000
/** A call must end this long before its lease. */
const marginMs = 200

/** A batch of each lane read together, delivered together. */
interface Round {
  readonly batches: readonly Batch[]
  readonly entries: readonly Entry[]
  readonly rehearsed: boolean
  readonly startedMs: number
}

export class Loop {
  readonly #station: Station
  readonly #leases: Leases
  readonly #breaker: Breaker
  readonly #wake = new Wake()
  #settling: Promise<void> = Promise.resolve()
  #next: Promise<Batch[] | undefined> | undefined
  #doubt = false
  #count: number
  #turns = 0
  /** The last read of all lanes met no limit: more comes with the next news. */
  #sated = false
  #stopping = false
  #nothingToProbe = false
  #errorsInRow = 0

  constructor(station: Station, share: () => number) {
    this.#station = station
    this.#leases = new Leases(station, share)
    this.#breaker = new Breaker(station)
    this.#count = station.subscription.batch.count
  }

  get lanes(): readonly number[] {
    return this.#leases.lanes.map(({ lane }) => lane)
  }

  /** Something is in these lanes (anywhere, when left out); `free`: in one that nobody here holds. */
  hear(lanes: readonly number[] | undefined, free: boolean): void {
    if (free) this.#leases.seek()
    const concerned = lanes === undefined || this.lanes.some((lane) => lanes.includes(lane))
    if (concerned || (free && this.#leases.missing)) this.#wake.wake()
  }

  stop(): void {
    this.#stopping = true
    this.#wake.wake()
  }

  /** Until stopped; then lanes are given back. */
  async run(): Promise<void> {
    const keeper = setInterval(() => this.#leases.keep().catch(() => {}), this.#station.leaseMs / 6)
    try {
      while (!this.#stopping) {
        const seen = this.#wake.count
        const { pollMs, busyPollMs } = this.#station
        this.#sated = false
        const startedMs = performance.now()
        const worked = await this.#safely(() => this.turn())
        if (!worked) await this.#rest(seen, pollMs)
        if (!worked || !this.#sated || this.#next !== undefined) continue
        // What comes while this round's time passes again is one round: half of the machine at most.
        await pause(Math.min(busyPollMs, performance.now() - startedMs))
        await this.#rest(seen, busyPollMs)
      }
    } finally {
      clearInterval(keeper)
      await this.end()
    }
  }

  /** Settles what is in flight and gives the lanes back. */
  async end(): Promise<void> {
    await this.#next?.catch(() => {})
    this.#next = undefined
    await this.#settling
    this.#station.rate?.share(this, 0)
    await this.#leases.giveBack().catch(() => {})
  }

  /** Rounds until there is nothing to do; true if there was something. */
  async turnUntilIdle(untilMs: number): Promise<boolean> {
    let worked = false
    while (performance.now() < untilMs) {
      if (await this.turn()) worked = true
      else if (!(await this.#more())) break
    }
    await this.#settling
    return worked
  }

  async #more(): Promise<boolean> {
    await this.#settling
    const { mode, outdated, held } = this.#station.state()
    return mode !== 'paused' && !outdated && !held && !this.#doubt && this.#leases.more()
  }

  /** One round. False: there was nothing to do. */
  async turn(): Promise<boolean> {
    if (this.#next === undefined) await this.#settling
    if (this.#doubt) await this.#askAgain()
    const state = this.#station.state()
    if (state.mode === 'paused' || state.outdated) {
      await this.#forget()
      await this.#leases.giveBack()
      return false
    }
    if (this.#next === undefined && !this.#stopping) {
      for (const lane of this.#leases.lanes) lane.landed()
      await this.#leases.balance()
    }
    if (this.#leases.lanes.length === 0 || this.#stopping) return false
    if (state.held) return this.#probe(state.probeAtMs)
    const batches = await (this.#next ?? this.#read(false))
    this.#next = undefined
    if (batches === undefined) {
      await this.#station.refresh()
      return false
    }
    return !this.#stopping && this.#process(batches)
  }

  /** After a lost answer or a refused settle nothing is assumed: the database says where we are. */
  async #askAgain(): Promise<void> {
    await this.#forget()
    // A new fence: what a ledger was sending when the answer was lost becomes `unknown`.
    if (this.#station.subscription.ledger) await this.#leases.giveBack()
    else await this.#leases.ask()
    await this.#leases.releaseForgotten()
    // A refusal may mean another mode or revision than we think.
    await this.#station.refresh()
    this.#doubt = false
  }

  /** Drops what was read ahead. */
  async #forget(): Promise<void> {
    await this.#next?.catch(() => {})
    this.#next = undefined
    await this.#settling
    for (const lane of this.#leases.lanes) lane.rewind()
  }

  /** The destination is held: one event of one lane, by whoever wins; the lane changes each time. */
  async #probe(probeAtMs: number): Promise<boolean> {
    await this.#forget()
    this.#nothingToProbe = false
    if (performance.now() < probeAtMs) return false
    const batches = (await this.#read(true)) ?? []
    for (const { lane } of batches) lane.rewind()
    const one = batches.map(oneOf).find((batch) => batch !== undefined)
    if (one !== undefined) return (await this.#breaker.mayProbe()) && this.#process([one])
    // Nothing to send here; what does not match, or waits for a retry, is passed meanwhile.
    const passing = batches.filter(moved)
    if (passing.length > 0) return this.#process(passing)
    this.#nothingToProbe = true
    await this.#breaker.askSink()
    return false
  }

  #lanesToRead(probing: boolean): HeldLane[] {
    const { lanes } = this.#leases
    const first = this.#turns++ % lanes.length
    if (probing) return [...lanes.slice(first), ...lanes.slice(0, first)]
    // A batch that keeps failing is one event of one lane.
    if (this.#count <= 1) return lanes.slice(first, first + 1)
    // Lanes that were full come last: they get what the others leave.
    return [...lanes].sort((a, b) => Number(a.full) - Number(b.full))
  }

  async #read(probing: boolean): Promise<Batch[] | undefined> {
    const { db, subscription, turnstile, kinds, definitions, listens } = this.#station
    const lanes = this.#lanesToRead(probing)
    const count = probing ? 1 : this.#allowance()
    if (count === 0) return []
    const asked = lanes.map((lane) => ({ lane: lane.lane, after: lane.ahead }))
    const limits = { count, bytes: subscription.batch.bytes, probing }
    if (subscription.ledger && !probing) {
      await enlist(db, subscription, this.#station.owner, lanes, count)
    }
    const reads = await turnstile.through(subscription.priority, () =>
      read(db, subscription, asked, limits, kinds, definitions, listens),
    )
    return reads?.map((found, index) => {
      const lane = lanes[index] as HeldLane
      lane.full = found.more
      lane.ahead = found.through
      return { lane, from: (asked[index] as (typeof asked)[0]).after, read: found }
    })
  }

  /** How many events the next read may bring. */
  #allowance(): number {
    const { rate, state } = this.#station
    if (rate === undefined) return this.#count
    rate.share(this, this.#leases.lanes.length / state().lanes)
    return Math.min(this.#count, rate.available())
  }

  async #process(given: readonly Batch[]): Promise<boolean> {
    const held = new Set(this.#leases.lanes)
    const batches = given
      .filter(({ lane }) => held.has(lane))
      .map((batch) => ({ ...batch, read: batch.lane.refresh(batch.read) }))
    const known = new Result()
    const entries = batches.flatMap((batch) => toSend(batch, known))
    if (entries.length === 0 && known.size === 0 && !batches.some(moved)) return false
    this.#leases.busy()
    const whole = this.#count > 1 && given.length === this.#leases.lanes.length
    this.#sated = whole && !given.some(({ read: { more } }) => more)
    for (const { lane, read: found } of batches) {
      lane.begin(found)
      if (found.through > lane.ahead) lane.ahead = found.through
    }
    const rehearsed = this.#station.state().mode === 'dry-run'
    const round = { batches, entries, rehearsed, startedMs: performance.now() }
    const sent = this.#deliver(round)
    if (batches.some(({ read: { more } }) => more)) this.#readAhead()
    const result = await sent
    result.add(known)
    return this.#finish(round, result)
  }

  /** Not while probing, and not when lanes are to be taken or given back first. */
  #readAhead(): void {
    if (this.#station.state().held || this.#leases.unbalanced || this.#stopping) return
    this.#next = this.#read(false)
    this.#next.catch(() => {})
  }

  async #deliver({ entries, rehearsed }: Round): Promise<Result> {
    const { db, subscription, owner, rate, abort } = this.#station
    if (entries.length === 0) return new Result()
    rate?.take(entries.length)
    if (rehearsed) return rehearse(subscription, entries)
    const lost = new AbortController()
    this.#leases.onLost = () => lost.abort()
    const lanes = new Map(this.#leases.lanes.map((lane) => [lane.lane, lane]))
    const holder = (entry: Entry): HeldLane | undefined => {
      const lane = lanes.get(entry.lane)
      return lane !== undefined && this.#leases.lanes.includes(lane) ? lane : undefined
    }
    return deliver(subscription, entries, {
      signal: AbortSignal.any([abort, lost.signal]),
      deadlineMs: () => this.#deadlineMs(),
      mine: (entry) => holder(entry) !== undefined,
      called: (events, outcomes, durationMs) =>
        tellCall(this.#station, events, outcomes, durationMs),
      sending: async (entry, note) => {
        const mine = holder(entry)
        if (mine === undefined)
          throw new HermodError('HMD_LEASE_LOST', `lane ${entry.lane} is no longer held`)
        await sending(db, subscription.name, owner, mine, entry.event.position, note)
      },
    })
  }

  /** Of the next call: always shorter than what is left of the leases, which are extended first. */
  async #deadlineMs(): Promise<number> {
    const { callMs } = this.#station.subscription
    if (this.#stopping) return 0
    // A database that does not answer ends nothing yet: the lease still has its time.
    await this.#leases.keep(callMs + marginMs).catch(() => {})
    return Math.min(callMs, this.#leases.leftMs - marginMs)
  }

  async #finish(round: Round, result: Result): Promise<boolean> {
    const { batches, entries } = round
    spendPoison(batches, result, this.#station.passes + passedIn(result))
    const trouble = troubleIn(result)
    const { subscription, random } = this.#station
    const delay = (attempt: number, afterMs: number | undefined) =>
      nextDelayMs(subscription.retry, attempt, afterMs, random)
    const settlements = batches.map(({ lane, from, read: found }) => {
      const { failed, dead } = aftermath(subscription, found, result)
      lane.ended(failed, dead)
      return settlement(subscription, { ...found, fence: lane.fence, from }, result, delay)
    })
    await this.#settling
    const cut = batches.some(({ read: { through } }, index) => settlements[index]?.to !== through)
    this.#settling = this.#settle(round, settlements)
    if (cut || trouble !== undefined || this.#doubt) await this.#forget()
    const tried = entries.some((entry) => result.has(entry))
    this.#station.passes += passedIn(result)
    if (trouble !== undefined) await this.#troubled(trouble, entries.length)
    else if (tried) await this.#passed(entries.length)
    else await this.#breaker.unused()
    return trouble === undefined && (!cut || tried)
  }

  async #settle(round: Round, settlements: readonly Settlement[]): Promise<void> {
    const { db, subscription, owner, workerName } = this.#station
    const lanes = new Map(round.batches.map(({ lane }) => [lane.lane, lane]))
    const writing = settlements.filter(
      (lane) => lane.to > lane.from || lane.rows.length + lane.done.length + lane.held.length > 0,
    )
    for (const one of settlements)
      if (!writing.includes(one)) lanes.get(one.lane)?.settled(one.to, one.beyond)
    if (writing.length === 0) return
    const elapsedMs = performance.now() - round.startedMs
    const call = { startedAgoMs: elapsedMs, durationMs: elapsedMs, worker: workerName }
    try {
      const { rehearsed } = round
      const settled = await settle(db, subscription, owner, writing, { ...call, rehearsed })
      for (const one of writing) {
        if (settled.has(one.lane)) lanes.get(one.lane)?.settled(one.to, one.beyond)
        else this.#doubt = true
        if (settled.has(one.lane)) tellRetries(this.#station, one)
      }
    } catch (error) {
      // Its COMMIT may have happened: the lanes are read again, never assumed.
      this.#doubt = true
      const { name } = subscription
      notify(this.#station.listener, 'error', { during: 'settle', error, subscription: name })
    }
  }

  /** A batch that failed comes back smaller; a probe, which is one event, says nothing about size. */
  async #troubled(trouble: Parameters<Breaker['troubled']>[0], sent: number): Promise<void> {
    if (sent > 1) this.#count = Math.max(1, Math.floor(this.#count / 2))
    await this.#breaker.troubled(trouble)
  }

  async #passed(sent: number): Promise<void> {
    const { count } = this.#station.subscription.batch
    if (sent > 1 || sent >= this.#count) this.#count = Math.min(count, this.#count * 4)
    await this.#breaker.passed()
  }

  async #rest(seen: number, pollMs: number): Promise<void> {
    const { rate, state } = this.#station
    const { held, probeAtMs } = state()
    await this.#safely(async () => {
      await this.#settling
      // What was delivered beyond the cursor is known only here: lanes are kept during an outage.
      if (!held) await this.#leases.giveBackIdle()
      return true
    })
    const probing = held && !this.#nothingToProbe && this.#leases.lanes.length > 0
    const untilProbeMs = probing ? Math.max(5, probeAtMs - performance.now()) : pollMs
    const rateMs = this.#leases.lanes.length > 0 ? (rate?.waitMs() ?? 0) : 0
    await this.#wake.wait(Math.min(pollMs, untilProbeMs, rateMs > 0 ? rateMs : pollMs), seen)
  }

  /** An error of the database ends a round, never the loop. */
  async #safely(work: () => Promise<boolean>): Promise<boolean> {
    try {
      const result = await work()
      this.#errorsInRow = 0
      return result
    } catch (error) {
      this.#doubt = true
      const { listener, subscription } = this.#station
      notify(listener, 'error', { during: 'deliver', error, subscription: subscription.name })
      const slow = isConnectionError(error) ? 100 : errorPauseMs
      await this.#wake.wait(Math.min(errorPauseMs, slow * ++this.#errorsInRow))
      return false
    }
  }
}
