/**
 * One claim loop: decides what comes next (decide.ts), does it, and asks again, until it is stopped or idle.
 * An error of the database ends an action, never the loop.
 */
import { isConnectionError } from '../database.ts'
import { notify } from '../telemetry.ts'
import { Again } from './again.ts'
import { Breaker } from './breaker.ts'
import { type Action, decide, mayReadAhead, type View } from './decide.ts'
import { Leases } from './leases.ts'
import { Parking } from './parking.ts'
import { Replaying } from './replay/replaying.ts'
import { Rounds } from './rounds.ts'
import { Sending } from './sending.ts'
import type { Station } from './station.ts'
import { Wake } from './wake.ts'

const errorPauseMs = 1_000
const brokenConnectionMs = 100
/** Another worker may be probing: this loop asks at most this often. */
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
  /** How many wake-ups the last decision knew of. */
  #wakesKnown = 0
  /** How many wake-ups the last round knew of. */
  #wakesSeen = -1
  /** When all lanes are looked at, whether there is news or not: news may get lost, and retries become due. */
  #pollAtMs = 0
  /** The last look left something. */
  #more = false
  /** There may be an event to probe with, but not before `#probeAtMs`. */
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
    this.#rounds = new Rounds(station, parts, () => mayReadAhead(this.#view(), performance.now()))
    this.#replaying = new Replaying(station, parts, this.#wake)
    this.#again = new Again(station, parts)
  }

  get lanes(): readonly number[] {
    return this.#leases.lanes.map(({ lane }) => lane)
  }

  /** There is news in these lanes (undefined: in any). `free`: in a lane that no loop of this worker has. */
  hear(lanes: readonly number[] | undefined, free: boolean): void {
    if (free) this.#leases.seek()
    const concerned = this.#leases.lanes.filter(({ lane }) => lanes?.includes(lane) ?? true)
    for (const lane of concerned) lane.news = true
    if (concerned.length > 0 || (free && this.#leases.missing)) this.#wake.wake()
  }

  stop(): void {
    this.#stopping = true
    this.#sending.stop()
    this.#wake.wake()
  }

  /** Somebody has called since it decided to end. */
  get called(): boolean {
    return this.#wake.count !== this.#wakesKnown
  }

  /** Runs until stopped, or until there is nothing to claim; then gives its lanes back. */
  async run(): Promise<void> {
    const keeper = setInterval(() => this.#leases.keep().catch(() => {}), this.#station.leaseMs / 6)
    try {
      for (;;) {
        const action = this.#next()
        this.#wakesKnown = this.#wake.count
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
    this.#pollAtMs = 0
    while (performance.now() < untilMs) {
      const action = this.#next()
      if (action.do === 'end' || action.do === 'sleep') break
      if (action.do === 'rest') {
        if (await this.#restOnce(action.ms, untilMs)) continue
        break
      }
      const found = await this.#act(action)
      // Until a look finds nothing: no pause in between.
      if (found) this.#pollAtMs = 0
      worked ||= found
    }
    await this.#rounds.settler.all()
    return worked
  }

  /** Settles what is in flight and gives the lanes back. */
  async end(): Promise<void> {
    await this.#safely(() => this.#rounds.forget())
    await this.#replaying.end()
    this.#replaying.forget()
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
      balanceAtMs: this.#leases.balanceAtMs,
      ahead: this.#rounds.ahead,
      breaker: held ? { probeAtMs: Math.max(probeAtMs, this.#probeAtMs), canProbe: this.#canProbe } : undefined,
      lookAtMs: this.#more ? 0 : this.#pollAtMs,
      called: this.#wakesSeen !== this.#wake.count,
      replayAtMs: nowMs + this.#replaying.waitMs,
      againAtMs: mode === 'live' ? this.#again.atMs : Number.POSITIVE_INFINITY,
      rateAtMs: nowMs + waiting,
      idle: this.#leases.idle,
      pollMs,
    }
  }

  /** True: something was found. */
  async #act(action: Exclude<Action, { do: 'end' | 'sleep' }>): Promise<boolean> {
    switch (action.do) {
      case 'rest':
        return this.#rest(action.ms)
      case 'round':
        return this.#round()
      case 'land':
        return this.#rounds.land()
      case 'ask':
        return this.#ask()
      case 'probe':
        return this.#probe()
      case 'forget':
      case 'release':
      case 'balance':
      case 'replay':
      case 'again':
        // These begin with everything settled: lanes change hands, or events are sent again.
        await this.#rounds.forget()
        return this.#afterwards(action)
    }
  }

  async #afterwards(
    action: Extract<Action, { do: 'release' | 'balance' | 'replay' | 'again' | 'forget' }>,
  ): Promise<boolean> {
    if (action.do === 'release') await this.#release(action.lanes)
    else if (action.do === 'balance') await this.#balance()
    else if (action.do !== 'forget') await this.#rounds.resume()
    if (action.do === 'replay') this.#replaying.begin()
    else if (action.do === 'again') await this.#again.send()
    return false
  }

  async #release(which: 'all' | 'free'): Promise<void> {
    if (which === 'all') await this.#replaying.end()
    await this.#leases.giveBack(which === 'all' ? this.#leases.lanes : this.#leases.free)
  }

  async #round(): Promise<boolean> {
    this.#wakesSeen = this.#wake.count
    this.#replaying.looked()
    const polling = this.#pollAtMs <= performance.now()
    if (polling) for (const lane of this.#leases.lanes) lane.news = true
    const found = await this.#rounds.round()
    this.#more = found === 'more'
    const { pollMs, busyPollMs } = this.#station
    if (polling) this.#pollAtMs = performance.now() + (found === 'nothing' ? pollMs : busyPollMs)
    return found !== 'nothing'
  }

  async #balance(): Promise<void> {
    const before = this.#leases.lanes.length
    await this.#leases.releaseInterrupted()
    await this.#leases.balance()
    if (this.#leases.lanes.length > before) this.#pollAtMs = 0
  }

  /** After a lost answer or a refused settle the loop assumes nothing: it asks the database. */
  async #ask(): Promise<boolean> {
    await this.#rounds.forget()
    // A ledger needs a new fence: rows that were `sending` when the answer was lost become `unknown`.
    if (this.#station.subscription.ledger) await this.#leases.giveBack(this.#leases.free)
    else await this.#leases.ask()
    await this.#leases.releaseForgotten()
    // The refusal may come from a changed mode or revision.
    await this.#station.refresh()
    this.#doubt = false
    this.#rounds.settler.doubt = false
    this.#pollAtMs = 0
    return false
  }

  async #probe(): Promise<boolean> {
    await this.#rounds.forget()
    await this.#rounds.resume()
    this.#pollAtMs = 0
    // A probe that is parked is still under way.
    if (this.#breaker.probing && (this.#parking?.size ?? 0) > 0) this.#canProbe = false
    else await this.#tryDestination()
    return false
  }

  /** With an event, else with one of a replay, else by asking the sink itself. */
  async #tryDestination(): Promise<void> {
    const found = await this.#rounds.probe()
    if (found === 'tried') this.#probeAtMs = performance.now() + probeEveryMs
    else if (!(await this.#replaying.probe())) {
      this.#canProbe = found === 'skipped'
      await this.#breaker.askSink()
    }
  }

  async #rest(ms: number): Promise<boolean> {
    await this.#wake.wait(ms)
    this.#canProbe = true
    // When the breaker closes there is probably a backlog.
    if (this.#station.state().held) this.#pollAtMs = 0
    return false
  }

  /** For runOnce. False: no parked call, no replay and no further lane to wait for. */
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
    this.#pollAtMs = 0
    return true
  }

  /** Recorded tasks are left to the next owner; the loop waits for the others, during the grace period. */
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
