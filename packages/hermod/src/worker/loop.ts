/**
 * One claim loop: decides what comes next (decide.ts), does it, and asks again, until it is stopped or idle.
 * An error of the database ends an action, never the loop.
 */
import { isConnectionError } from '../database.ts'
import { notify } from '../telemetry.ts'
import { Again } from './again.ts'
import { Breaker } from './breaker.ts'
import { type Action, decide, type View } from './decide.ts'
import { Leases } from './leases.ts'
import { Parking } from './parking.ts'
import { Replaying } from './replay/replaying.ts'
import { type Found, Rounds } from './rounds.ts'
import { Sending } from './sending.ts'
import type { Station } from './station.ts'
import { Wake } from './wake.ts'

const errorPauseMs = 1_000
const brokenConnectionMs = 100
/** Somebody else may be probing: no more often than this is asked. */
const probeEveryMs = 50

export class Loop {
  readonly #station: Station
  readonly #leases: Leases
  readonly #breaker: Breaker
  readonly #parking: Parking | undefined
  readonly #sending: Sending
  readonly #rounds: Rounds
  readonly #replaying: Replaying
  readonly #again: Again
  readonly #wake = new Wake()
  #stopping = false
  #doubt = false
  #errorsInRow = 0
  /** The wake-up that the last decision knew of. */
  #endedAt = 0
  /** The wake-up that the last look has answered. */
  #seen = -1
  #lookAtMs = 0
  /** There is something to try a destination with that was away; and not before this time. */
  #canProbe = true
  #probeAtMs = 0

  constructor(station: Station, share: () => number) {
    const wake = () => this.#wake.wake()
    this.#station = station
    this.#leases = new Leases(station, share)
    this.#breaker = new Breaker(station)
    this.#parking = station.poller && new Parking(station, station.poller, wake)
    this.#sending = new Sending(station, this.#leases, this.#parking)
    const parts = { leases: this.#leases, sending: this.#sending, breaker: this.#breaker, parking: this.#parking }
    this.#rounds = new Rounds(station, parts)
    this.#replaying = new Replaying(station, parts, this.#wake)
    this.#again = new Again(station, parts)
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
    this.#wake.wake()
  }

  /** Somebody has called since it decided to end. */
  get called(): boolean {
    return this.#wake.count !== this.#endedAt
  }

  /** Until stopped, or until there is nothing to claim; then lanes are given back. */
  async run(): Promise<void> {
    const keeper = setInterval(() => this.#leases.keep().catch(() => {}), this.#station.leaseMs / 6)
    try {
      for (;;) {
        const action = this.#next()
        this.#endedAt = this.#wake.count
        if (action.do === 'end' || action.do === 'sleep') break
        await this.#safely(() => this.#act(action))
      }
    } finally {
      await this.end().finally(() => clearInterval(keeper))
    }
  }

  /** Actions until there is nothing to do; true if something was found. For runOnce. */
  async runUntilIdle(untilMs: number): Promise<boolean> {
    let worked = false
    this.#lookAtMs = 0
    while (performance.now() < untilMs) {
      const action = this.#next()
      if (action.do === 'end' || action.do === 'sleep') break
      if (action.do === 'rest') {
        if (await this.#restOnce(action.ms, untilMs)) continue
        break
      }
      worked = (await this.#act(action)) || worked
    }
    await this.#rounds.settler.all()
    return worked
  }

  /** Settles what is in flight and gives the lanes back. */
  async end(): Promise<void> {
    await this.#safely(() => this.#rounds.forget())
    await this.#replaying.end()
    await this.#endParked()
    this.#rounds.reading.end()
    await this.#leases.giveBack().catch(() => {})
    this.#leases.end()
  }

  #next(): Action {
    this.#parking?.sweep(this.#leases.lanes)
    return decide(this.#view(), performance.now())
  }

  #view(): View {
    const { state, pollMs } = this.#station
    const { mode, outdated, held, probeAtMs } = state()
    const nowMs = performance.now()
    const waiting = this.#leases.lanes.length > 0 ? this.#rounds.reading.waitMs : 0
    return {
      stopping: this.#stopping,
      doubt: this.#doubt || this.#rounds.settler.doubt,
      returned: this.#parking?.isBack ?? false,
      mode,
      outdated,
      lanes: this.#leases.lanes.length,
      free: this.#leases.free.length,
      readable: this.#rounds.reading.lanes.length,
      balanceAtMs: this.#leases.balanceAtMs,
      ahead: this.#rounds.ahead,
      breaker: held ? { probeAtMs: Math.max(probeAtMs, this.#probeAtMs), canProbe: this.#canProbe } : undefined,
      lookAtMs: this.#lookAtMs,
      called: this.#seen !== this.#wake.count,
      replayAtMs: nowMs + this.#replaying.waitMs,
      againAtMs: mode === 'live' ? this.#again.atMs : Number.POSITIVE_INFINITY,
      rateAtMs: nowMs + waiting,
      idle: this.#leases.idle,
      pollMs,
    }
  }

  /** True: something was found. */
  async #act(action: Exclude<Action, { do: 'end' | 'sleep' }>): Promise<boolean> {
    if (action.do === 'rest') await this.#rest(action.ms)
    else if (action.do === 'round') return this.#look()
    else if (action.do === 'land') await this.#rounds.land()
    else if (action.do === 'ask') await this.#ask()
    else if (action.do === 'probe') await this.#probe()
    else {
      // Whatever changes hands or is sent again begins with everything settled.
      await this.#rounds.forget()
      if (action.do === 'release') await this.#leases.giveBack(action.all ? this.#leases.lanes : this.#leases.free)
      else if (action.do === 'balance') await this.#balance()
      else if (action.do === 'replay') this.#replaying.begin()
      else if (action.do === 'again') await this.#again.send()
    }
    return action.do === 'land'
  }

  async #look(): Promise<boolean> {
    this.#seen = this.#wake.count
    this.#replaying.looked()
    const found = await this.#rounds.round()
    this.#lookAtMs = performance.now() + this.#pauseMs(found)
    return found !== 'nothing'
  }

  /** News come by themselves; these pauses are for news that were lost. */
  #pauseMs(found: Found): number {
    const { pollMs, busyPollMs } = this.#station
    if (found === 'more') return 0
    return found === 'all' ? busyPollMs : pollMs
  }

  async #balance(): Promise<void> {
    const before = this.#leases.lanes.length
    if (!this.#sending.abandoned) await this.#leases.releaseInterrupted()
    await this.#leases.balance()
    if (this.#leases.lanes.length > before) this.#lookAtMs = 0
  }

  /** After a lost answer or a refused settle nothing is assumed: the database says where we are. */
  async #ask(): Promise<void> {
    await this.#rounds.forget()
    // A new fence: what a ledger was sending when the answer was lost becomes `unknown`.
    if (this.#station.subscription.ledger) await this.#leases.giveBack()
    else await this.#leases.ask()
    await this.#leases.releaseForgotten()
    // A refusal may mean another mode or revision than we think.
    await this.#station.refresh()
    this.#doubt = false
    this.#rounds.settler.doubt = false
    this.#lookAtMs = 0
  }

  async #probe(): Promise<void> {
    await this.#rounds.forget()
    this.#probeAtMs = performance.now() + probeEveryMs
    // A probe that is parked is still under way.
    const underWay = this.#breaker.probing && (this.#parking?.size ?? 0) > 0
    if (underWay) this.#canProbe = false
    else if (!(await this.#rounds.probe()) && !(await this.#replaying.probe())) {
      this.#canProbe = false
      await this.#breaker.askSink()
    }
    this.#lookAtMs = 0
  }

  async #rest(ms: number): Promise<void> {
    await this.#wake.wait(ms)
    this.#canProbe = true
    // When the breaker closes there is a backlog.
    if (this.#station.state().held) this.#lookAtMs = 0
  }

  /** For runOnce. False: nothing is parked or sent again, there is nothing to wait for. */
  async #restOnce(ms: number, untilMs: number): Promise<boolean> {
    await this.#rounds.settler.all()
    const { mode, outdated, held } = this.#station.state()
    if ((this.#parking?.size ?? 0) > 0 || this.#replaying.open) {
      await this.#leases.keep()
      await this.#rest(Math.min(ms, this.#station.leaseMs / 6, untilMs - performance.now()))
      return true
    }
    if (mode === 'paused' || outdated || held || this.#rounds.settler.doubt) return false
    if (!(await this.#leases.more())) return false
    this.#lookAtMs = 0
    return true
  }

  /** Tasks the next owner can ask for are left to it, the others are waited for during the grace. */
  async #endParked(): Promise<void> {
    const { pollMs } = this.#station
    for (;;) {
      const seen = this.#wake.count
      this.#parking?.sweep(this.#leases.lanes)
      await this.#safely(() => this.#rounds.land())
      if (!this.#leases.lanes.some(({ parked }) => parked === 'waiting')) break
      await this.#wake.wait(pollMs, seen)
    }
    this.#parking?.sweep([])
  }

  async #safely(work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
      this.#errorsInRow = 0
    } catch (error) {
      this.#doubt = true
      const { listener, subscription } = this.#station
      notify(listener, 'error', { during: 'deliver', error, subscription: subscription.name })
      const pauseMs = isConnectionError(error) ? brokenConnectionMs : errorPauseMs
      await this.#wake.wait(Math.min(errorPauseMs, pauseMs * ++this.#errorsInRow))
    }
  }
}
