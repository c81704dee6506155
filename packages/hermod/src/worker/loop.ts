/**
 * One claim loop: claim → read → deliver → settle, over and over. The next batch is read while one
 * is being delivered, and settled while the next is; what was read ahead is looked at again with
 * what has failed since.
 *
 *        read n+1                 read n+2
 *   ────deliver n────┐   ────deliver n+1────┐
 *                    └─settle n             └─settle n+1
 *
 * Where a read meets no limit there is nothing to read ahead: then the next read takes the settle
 * along, and a step of the numbering, in one statement (flow/turn.ts).
 */
import { isConnectionError } from '../database.ts'
import { Result } from '../flow/result.ts'
import { settlement } from '../flow/settle.ts'
import { notify } from '../telemetry.ts'
import {
  aftermath,
  type Batch,
  hasNews,
  isEmpty,
  moved,
  oneOf,
  passedIn,
  type Round,
  spendPoison,
  toSend,
  troubleIn,
} from './batch.ts'
import { Breaker } from './breaker.ts'
import { Leases } from './leases.ts'
import { Parking } from './parking.ts'
import { Reading } from './reading.ts'
import { Replaying } from './replaying.ts'
import { nextDelayMs } from './retry.ts'
import { Sending } from './sending.ts'
import { keptMax, Settling } from './settling.ts'
import type { Station } from './station.ts'
import { readAlong } from './turning.ts'
import { Wake } from './wake.ts'

const errorPauseMs = 1_000

export class Loop {
  readonly #station: Station
  readonly #leases: Leases
  readonly #breaker: Breaker
  readonly #wake = new Wake()
  readonly #ending = new Wake()
  readonly #parking: Parking | undefined
  readonly #reading: Reading
  readonly #sending: Sending
  readonly #replaying: Replaying
  readonly #settling: Settling
  #next: Promise<Batch[] | undefined> | undefined
  /** The last read of all lanes met no limit: more comes with the next news. */
  #sated = false
  /** Nothing is under way: it waits for news, or until enough has come together for a round. */
  #resting = false
  /** The last round was quick. */
  #quick = false
  #running = false
  #stopping = false
  #nothingToProbe = false
  #errorsInRow = 0

  constructor(station: Station, share: () => number) {
    this.#station = station
    this.#leases = new Leases(station, share)
    this.#breaker = new Breaker(station)
    const { poller } = station
    this.#parking = poller && new Parking(station, poller, () => this.#wake.wake())
    this.#reading = new Reading(station, this.#leases)
    this.#sending = new Sending(station, this.#leases, this.#parking)
    this.#settling = new Settling(station)
    const wake = () => this.#wake.wake()
    this.#replaying = new Replaying(station, this.#leases, this.#sending, this.#breaker, wake)
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
    this.#sending.stop()
    this.#ending.wake()
    this.#wake.wake()
  }

  /** Asked to read and take a step along. 'soon': it is at a round that is quick, and comes after it. */
  carry(): 'now' | 'soon' | undefined {
    if (!this.#mayTakeAlong || !(this.#resting || this.#quick)) return undefined
    this.#wake.wake()
    return this.#resting ? 'now' : 'soon'
  }

  /** Until stopped; then lanes are given back. */
  async run(): Promise<void> {
    const keeper = setInterval(() => this.#leases.keep().catch(() => {}), this.#station.leaseMs / 6)
    this.#running = true
    try {
      while (!this.#stopping) {
        const seen = this.#wake.count
        const { pollMs, busyPollMs } = this.#station
        this.#sated = false
        const startedMs = performance.now()
        const worked = await this.#safely(() => this.turn())
        this.#quick = performance.now() - startedMs < busyPollMs / 2
        if (!worked) await this.#rest(seen, pollMs)
        if (!worked || !this.#sated || this.#next !== undefined) continue
        // The next read settles and numbers as well: what came meanwhile is its round.
        if (this.#settling.waits) continue
        // What comes while this round's time passes again is one round: half of the machine at most.
        this.#resting = true
        await this.#ending.wait(Math.min(busyPollMs, performance.now() - startedMs), 0)
        this.#resting = false
        await this.#rest(seen, busyPollMs)
      }
    } finally {
      this.#running = false
      await this.end().finally(() => clearInterval(keeper))
    }
  }

  /** Settles what is in flight and gives the lanes back. */
  async end(): Promise<void> {
    await this.#next?.catch(() => {})
    this.#next = undefined
    await this.#settling.all()
    await this.#replaying.end()
    await this.#endParked()
    this.#reading.end()
    await this.#leases.giveBack().catch(() => {})
  }

  /** Rounds until there is nothing to do; true if there was something. */
  async turnUntilIdle(untilMs: number): Promise<boolean> {
    let worked = false
    this.#running = true
    while (performance.now() < untilMs) {
      const seen = this.#wake.count
      if (await this.turn()) worked = true
      else if (await this.#parked(seen, untilMs - performance.now())) continue
      else if (!(await this.#more())) break
    }
    this.#running = false
    await this.#settling.all()
    return worked
  }

  /** False: nothing is parked or sent again, there is nothing to wait for. */
  async #parked(seen: number, leftMs: number): Promise<boolean> {
    if ((this.#parking?.size ?? 0) === 0 && !this.#replaying.open) return false
    const { pollMs, leaseMs } = this.#station
    await this.#leases.keep()
    const waitMs = Math.min(pollMs, this.#replaying.waitMs, leaseMs / 6, leftMs)
    await this.#wake.wait(waitMs, seen)
    return true
  }

  /** Tasks the next owner can ask for are left to it, the others are waited for during the grace. */
  async #endParked(): Promise<void> {
    const { pollMs } = this.#station
    for (;;) {
      const seen = this.#wake.count
      await this.#safely(() => this.#land())
      if (!this.#leases.lanes.some(({ parked }) => parked === 'waiting')) break
      await this.#wake.wait(pollMs, seen)
    }
    this.#parking?.sweep([])
  }

  /** Parked rounds that are back are settled like any other. */
  async #land(): Promise<boolean> {
    this.#parking?.sweep(this.#leases.lanes)
    let landed = false
    for (let back = this.#parking?.next(); back !== undefined; back = this.#parking?.next()) {
      landed = true
      const free = this.#reading.lanes
      const batches = back.round.batches.filter(({ lane }) => free.includes(lane))
      if (batches.length > 0) await this.#finish({ ...back.round, batches }, back.result)
      await this.#settling.all()
      for (const { lane } of batches) lane.rewind()
    }
    return landed
  }

  async #more(): Promise<boolean> {
    await this.#settling.all()
    const { mode, outdated, held } = this.#station.state()
    return mode !== 'paused' && !outdated && !held && !this.#settling.doubt && this.#leases.more()
  }

  /** One round. False: there was nothing to do. */
  async turn(): Promise<boolean> {
    this.#replaying.round()
    if (this.#next === undefined && !this.#mayTakeAlong) await this.#settling.all()
    if (this.#settling.doubt) await this.#askAgain()
    if (this.#parking !== undefined && (await this.#land())) return true
    const state = this.#station.state()
    if (state.mode === 'paused' || state.outdated) {
      await this.#forget()
      // What is under way when a subscription is paused ends and counts.
      if (state.outdated) await this.#leases.giveBack()
      else await this.#leases.giveBackFree()
      return false
    }
    if (this.#next === undefined && !this.#stopping) {
      for (const lane of this.#leases.lanes) lane.landed()
      await this.#leases.balance()
      if (state.mode === 'live') await this.#parking?.resume(this.#leases.lanes)
      if (!state.held) this.#replaying.begin()
    }
    if (this.#reading.lanes.length === 0 || this.#stopping) return false
    if (state.held) return this.#probe(state.probeAtMs)
    const batches = await (this.#next ?? this.#read())
    this.#next = undefined
    // What was settled along with it was refused: where we are is asked first.
    if (this.#settling.doubt) return true
    if (batches === undefined) {
      await this.#station.refresh()
      return false
    }
    return !this.#stopping && this.#process(batches)
  }

  /** The next statement may hold more than a read: all is well, no lane is to change hands. */
  get #mayTakeAlong(): boolean {
    const { mode, outdated, held } = this.#station.state()
    if (!this.#running || this.#stopping || this.#settling.doubt) return false
    if (mode === 'paused' || outdated || held || this.#station.subscription.ledger) return false
    if (this.#parking !== undefined || this.#replaying.open || this.#leases.unbalanced) return false
    return this.#leases.lanes.length > 0 && !this.#reading.spent
  }

  /** What comes next; what is to be settled and numbered goes with it. */
  #read(): Promise<Batch[] | undefined> {
    const step = this.#mayTakeAlong ? this.#station.lendStep(this) : undefined
    return readAlong(this.#station, this.#reading, this.#settling, step)
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
    this.#settling.doubt = false
  }

  /** Drops what was read ahead. */
  async #forget(): Promise<void> {
    await this.#next?.catch(() => {})
    this.#next = undefined
    await this.#settling.all()
    for (const lane of this.#leases.lanes) lane.rewind()
  }

  /** The destination is held: one event of one lane, by whoever wins; the lane changes each time. */
  async #probe(probeAtMs: number): Promise<boolean> {
    await this.#forget()
    // A probe that is parked is still under way.
    this.#nothingToProbe = this.#breaker.probing && (this.#parking?.size ?? 0) > 0
    if (this.#nothingToProbe || performance.now() < probeAtMs) return false
    const batches = (await this.#reading.read(true)) ?? []
    for (const { lane } of batches) lane.rewind()
    const one = batches.map(oneOf).find((batch) => batch !== undefined)
    if (one !== undefined) return (await this.#breaker.mayProbe()) && this.#process([one])
    // Nothing to send here; what does not match, or waits for a retry, is passed meanwhile.
    const passing = batches.filter(moved)
    if (passing.length > 0) return this.#process(passing)
    this.#nothingToProbe = true
    if (await this.#replaying.probe()) return true
    await this.#breaker.askSink()
    return false
  }

  async #process(given: readonly Batch[]): Promise<boolean> {
    const held = new Set(this.#leases.lanes)
    const batches = given
      .filter((batch) => held.has(batch.lane) && hasNews(batch))
      .map((batch) => ({ ...batch, read: batch.lane.refresh(batch.read) }))
    const known = new Result()
    const sends = batches.map((batch) => toSend(batch, known))
    const entries = sends.flat()
    // Lanes with nothing to send do not wait for a task of the others.
    if (this.#parking !== undefined && entries.length > 0 && sends.some(isEmpty)) {
      const passed = await this.#process(batches.filter((_, at) => isEmpty(sends[at])))
      return (await this.#process(batches.filter((_, at) => !isEmpty(sends[at])))) || passed
    }
    if (entries.length === 0 && known.size === 0 && !batches.some(moved)) return false
    this.#leases.busy()
    const whole = !this.#reading.single && given.length === this.#leases.lanes.length
    this.#sated = whole && !given.some(({ read: { more } }) => more)
    for (const { lane, read: found } of batches) {
      lane.begin(found)
      if (found.through > lane.ahead) lane.ahead = found.through
    }
    const rehearsed = this.#station.state().mode === 'dry-run'
    const round = { batches, entries, known, rehearsed, startedMs: performance.now() }
    const sent = this.#sending.send(round)
    if (batches.some(({ read: { more } }) => more)) this.#readAhead()
    const result = await (this.#parking?.follow(round, sent) ?? sent)
    // Parked: it comes back.
    return result === undefined || this.#finish(round, result)
  }

  /** Not while probing, not when lanes are to be taken or given back, not behind a task. */
  #readAhead(): void {
    if (this.#parking !== undefined || this.#replaying.due) return
    if (this.#station.state().held || this.#leases.unbalanced || this.#stopping) return
    this.#next = this.#reading.read(false)
    this.#next.catch(() => {})
  }

  async #finish(round: Round, result: Result): Promise<boolean> {
    const { batches, entries, known, counts } = round
    result.add(known)
    spendPoison(batches, result, this.#station.passes + passedIn(result))
    const trouble = troubleIn(result)
    const { subscription, random } = this.#station
    const delay = (attempt: number, afterMs: number | undefined) =>
      nextDelayMs(subscription.retry, attempt, afterMs, random)
    const settlements = batches.map(({ lane, from, read: found }) => {
      const { failed, dead } = aftermath(subscription, found, result)
      lane.ended(failed, dead)
      const settled = settlement(subscription, { ...found, fence: lane.fence, from }, result, delay)
      return counts === undefined ? settled : { ...settled, ...counts }
    })
    await this.#settling.written()
    const cut = batches.some(({ read: { through } }, index) => settlements[index]?.to !== through)
    const well = !cut && trouble === undefined
    // Larger batches are settled beside the next read: both have enough to do.
    const small = entries.length <= keptMax
    const keep = well && small && this.#next === undefined && this.#mayTakeAlong
    await this.#settling.add({ round, lanes: settlements, endedMs: performance.now() }, keep)
    if (!well || this.#settling.doubt) await this.#forget()
    const tried = counts !== undefined || entries.some((entry) => result.has(entry))
    this.#station.passes += passedIn(result)
    if (trouble !== undefined) await this.#troubled(trouble, entries.length)
    else if (tried) await this.#passed(entries.length)
    else await this.#breaker.unused()
    return trouble === undefined && (!cut || tried)
  }

  async #troubled(trouble: Parameters<Breaker['troubled']>[0], sent: number): Promise<void> {
    this.#reading.failed(sent)
    await this.#breaker.troubled(trouble)
  }

  async #passed(sent: number): Promise<void> {
    this.#reading.passed(sent)
    await this.#breaker.passed()
  }

  async #rest(seen: number, pollMs: number): Promise<void> {
    const { rate, state } = this.#station
    const { held, probeAtMs } = state()
    await this.#safely(async () => {
      await this.#settling.all()
      // What was delivered beyond the cursor is known only here: lanes are kept during an outage.
      if (!held) await this.#leases.giveBackIdle()
      return true
    })
    const probing = held && !this.#nothingToProbe && this.#leases.lanes.length > 0
    const untilProbeMs = probing ? Math.max(5, probeAtMs - performance.now()) : pollMs
    const rateMs = this.#leases.lanes.length > 0 ? (rate?.waitMs() ?? 0) : 0
    const waitMs = Math.min(pollMs, untilProbeMs, rateMs > 0 ? rateMs : pollMs)
    this.#resting = true
    await this.#replaying.meanwhile(this.#wake.wait(waitMs, seen))
    this.#resting = false
  }

  /** An error of the database ends a round, never the loop. */
  async #safely(work: () => Promise<boolean>): Promise<boolean> {
    try {
      const result = await work()
      this.#errorsInRow = 0
      return result
    } catch (error) {
      this.#settling.doubt = true
      const { listener, subscription } = this.#station
      notify(listener, 'error', { during: 'deliver', error, subscription: subscription.name })
      const slow = isConnectionError(error) ? 100 : errorPauseMs
      await this.#wake.wait(Math.min(errorPauseMs, slow * ++this.#errorsInRow))
      return false
    }
  }
}
