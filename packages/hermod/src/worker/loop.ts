/**
 * One claim loop: claim → read → deliver → settle, over and over. The next batch is read while one
 * is being delivered, and settled while the next is; what was read ahead is looked at again with
 * what has failed since.
 *
 *        read n+1                 read n+2
 *   ────deliver n────┐   ────deliver n+1────┐
 *                    └─settle n             └─settle n+1
 */
import { isConnectionError } from '../database.ts'
import { HermodError } from '../errors.ts'
import { type Entry, type LaneRead, read } from '../flow/claim.ts'
import { deliver, type Result } from '../flow/deliver.ts'
import { hold, probe, recover, type Trouble } from '../flow/hold.ts'
import { enlist, sending } from '../flow/ledger.ts'
import { aggregateKey, type Settlement, settle, settlement } from '../flow/settle.ts'
import { delivered, type Outcome, rejected } from '../sinks/sink.ts'
import { notify } from '../telemetry.ts'
import type { HeldLane } from './lane.ts'
import { Leases } from './leases.ts'
import { tellCall, tellRetries } from './report.ts'
import { nextDelayMs } from './retry.ts'
import type { Station } from './station.ts'

/** Unavailable this often alone, while others passed: the event is the reason, not the destination. */
const strikesMax = 3
const errorPauseMs = 1_000
/** A call must end this long before its lease. */
const marginMs = 200

interface Batch {
  readonly lane: HeldLane
  readonly from: bigint
  readonly read: LaneRead
}

export class Loop {
  readonly #station: Station
  readonly #leases: Leases
  #settling: Promise<void> = Promise.resolve()
  #next: Promise<Batch[] | undefined> | undefined
  #doubt = false
  #count: number
  #turns = 0
  #stopping = false
  #errorsInRow = 0

  constructor(station: Station, share: () => number) {
    this.#station = station
    this.#leases = new Leases(station, share)
    this.#count = station.subscription.batch.count
  }

  stop(): void {
    this.#stopping = true
  }

  /** Until stopped; then lanes are given back. */
  async run(): Promise<void> {
    const keeper = setInterval(() => this.#leases.keep().catch(() => {}), this.#station.leaseMs / 6)
    try {
      while (!this.#stopping) {
        const seen = this.#station.wake.count
        if (!(await this.#safely(() => this.turn()))) await this.#rest(seen)
      }
    } finally {
      clearInterval(keeper)
      await this.end()
    }
  }

  /** Settles what is in flight and gives the lanes back. */
  async end(): Promise<void> {
    await this.#settling
    this.#next = undefined
    await this.#leases.giveBack().catch(() => {})
  }

  /** Rounds until there is nothing to do; true if there was something. */
  async turnUntilIdle(untilMs: number): Promise<boolean> {
    let worked = false
    while (performance.now() < untilMs && (await this.turn())) worked = true
    await this.#settling
    return worked
  }

  /** One round. False: there was nothing to do. */
  async turn(): Promise<boolean> {
    if (this.#doubt) {
      await this.#forget()
      await this.#leases.ask()
      this.#doubt = false
    }
    const state = this.#station.state()
    if (state.mode === 'paused' || state.outdated) {
      await this.#forget()
      await this.#leases.giveBack()
      return false
    }
    if (this.#next === undefined) {
      await this.#settling
      await this.#leases.balance()
    }
    if (this.#leases.lanes.length === 0) return false
    const probing = state.held
    if (probing && !(await this.#mayProbe(state.probeAtMs))) return false
    const batches = await (this.#next ?? this.#read(probing))
    this.#next = undefined
    if (batches === undefined) {
      await this.#settling
      await this.#station.refresh()
      return false
    }
    return this.#process(batches, probing)
  }

  async #mayProbe(probeAtMs: number): Promise<boolean> {
    await this.#forget()
    if (performance.now() < probeAtMs) return false
    const { db, subscription, owner } = this.#station
    const won = await probe(db, subscription.name, owner, subscription.callMs + 1_000)
    if (won)
      notify(this.#station.listener, 'breaker', {
        subscription: subscription.name,
        state: 'probing',
      })
    else await this.#station.refresh()
    return won
  }

  /** Drops what was read ahead. */
  async #forget(): Promise<void> {
    await this.#next?.catch(() => {})
    this.#next = undefined
    await this.#settling
    for (const lane of this.#leases.lanes) lane.rewind()
  }

  /** A probe, and a batch that keeps failing, is one event of one lane; the lane changes each time. */
  #lanesToRead(probing: boolean): HeldLane[] {
    const { lanes } = this.#leases
    this.#turns++
    if (probing || this.#count <= 1) return lanes.slice(this.#turns % lanes.length).slice(0, 1)
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
      const from = lane.ahead
      lane.full = found.more
      lane.ahead = subscription.ledger ? lane.ahead : found.through
      return { lane, from, read: found }
    })
  }

  /** How many events the next read may bring. */
  #allowance(): number {
    const { rate, state } = this.#station
    if (rate === undefined) return this.#count
    return Math.min(this.#count, rate.available(this.#leases.lanes.length / state().lanes))
  }

  async #process(given: readonly Batch[], probing: boolean): Promise<boolean> {
    const held = new Set(this.#leases.lanes)
    const batches = given
      .filter(({ lane }) => held.has(lane))
      .map((batch) => ({ ...batch, read: batch.lane.refresh(batch.read) }))
    const known: Result = new Map()
    const entries = batches.flatMap((batch) => toSend(batch, known))
    const moved = batches.some(({ from, read: { through } }) => through > from)
    if (entries.length === 0 && known.size === 0 && !moved) {
      await this.#settling
      if (probing) await this.#recovered()
      return false
    }
    this.#leases.busy()
    for (const {
      lane,
      read: { due },
    } of batches)
      lane.sending = new Set(due.map(({ event }) => event.position))
    const startedMs = performance.now()
    const sent = this.#deliver(entries)
    if (!probing && batches.some(({ read: { more } }) => more)) this.#readAhead()
    const result = await sent
    for (const [entry, outcome] of known) result.set(entry, outcome)
    return this.#finish(batches, result, startedMs, probing, entries)
  }

  #readAhead(): void {
    this.#next = this.#read(false)
    this.#next.catch(() => {})
  }

  async #deliver(entries: readonly Entry[]): Promise<Result> {
    const { db, subscription, owner, rate, abort } = this.#station
    if (entries.length === 0) return new Map()
    rate?.take(entries.length)
    if (this.#station.state().mode === 'dry-run') return rehearse(subscription.sink, entries)
    await this.#leases.keep(subscription.callMs + marginMs)
    const deadlineMs = Math.min(subscription.callMs, this.#leases.leftMs - marginMs)
    if (deadlineMs <= 0) return new Map()
    const laneOf = new Map(this.#leases.lanes.map((lane) => [lane.lane, lane]))
    return deliver(subscription, entries, {
      signal: abort,
      deadlineMs,
      called: (events, outcomes, durationMs) =>
        tellCall(this.#station, events, outcomes, durationMs),
      sending: async ({ lane, event }, note) => {
        const mine = laneOf.get(lane)
        if (mine === undefined)
          throw new HermodError('HMD_LEASE_LOST', `lane ${lane} is no longer held`)
        await sending(db, subscription.name, owner, mine, event.position, note)
      },
    })
  }

  async #finish(
    batches: readonly Batch[],
    result: Result,
    startedMs: number,
    probing: boolean,
    entries: readonly Entry[],
  ): Promise<boolean> {
    const trouble = this.#spendPoison(entries, result) ? undefined : troubleIn(result)
    const { subscription, random } = this.#station
    const settlements = batches.map(({ lane, from, read: found }) => {
      lane.failed = failedAggregates(found, result)
      const delay = (attempt: number, afterMs: number | undefined) =>
        nextDelayMs(subscription.retry, attempt, afterMs, random)
      return settlement(subscription, { ...found, fence: lane.fence, from }, result, delay)
    })
    await this.#settling
    const cut = batches.some(({ read: { through } }, index) => settlements[index]?.to !== through)
    this.#settling = this.#settle(batches, settlements, startedMs)
    if (cut || trouble !== undefined || this.#doubt) await this.#forget()
    if (trouble !== undefined) await this.#troubled(trouble)
    else await this.#passed(entries.length, probing)
    return trouble === undefined && (!cut || entries.length > 0)
  }

  async #settle(
    batches: readonly Batch[],
    settlements: readonly Settlement[],
    startedMs: number,
  ): Promise<void> {
    const { db, subscription, owner, workerName } = this.#station
    const writing = settlements.filter(
      (lane) => lane.to > lane.from || lane.rows.length + lane.done.length + lane.held.length > 0,
    )
    if (writing.length === 0) return
    const elapsedMs = performance.now() - startedMs
    const call = { startedAgoMs: elapsedMs, durationMs: elapsedMs, worker: workerName }
    try {
      const settled = await settle(db, subscription, owner, writing, call)
      this.#settled(batches, writing, settled)
    } catch (error) {
      // Its COMMIT may have happened: the lanes are read again, never assumed.
      this.#doubt = true
      notify(this.#station.listener, 'error', {
        during: 'settle',
        error,
        subscription: subscription.name,
      })
    }
  }

  #settled(
    batches: readonly Batch[],
    writing: readonly Settlement[],
    settled: ReadonlySet<number>,
  ): void {
    const lanes = new Map(batches.map(({ lane }) => [lane.lane, lane]))
    for (const one of writing) {
      const lane = lanes.get(one.lane) as HeldLane
      if (settled.has(one.lane)) {
        lane.settled(one.to, one.beyond)
        tellRetries(this.#station, one)
      } else this.#leases.lost([lane], one.sent)
    }
  }

  /** An event that is unavailable by itself, again and again, while others pass, spends an attempt. */
  #spendPoison(entries: readonly Entry[], result: Result): boolean {
    const [entry] = entries
    if (entries.length !== 1 || entry === undefined) return false
    const outcome = result.get(entry)
    const lane = this.#leases.lanes.find(({ lane }) => lane === entry.lane)
    if (lane === undefined || outcome === 'passed' || outcome?.outcome !== 'unavailable')
      return false
    const { passes } = this.#station
    if (passes > lane.passesAtStrike) lane.strikes++
    lane.passesAtStrike = passes
    if (lane.strikes < strikesMax) return false
    lane.strikes = 0
    result.set(entry, { ...outcome, outcome: 'retry' })
    return true
  }

  async #troubled(trouble: Trouble): Promise<void> {
    const { db, subscription, listener } = this.#station
    this.#count = Math.max(1, Math.floor(this.#count / 2))
    await hold(db, subscription.name, trouble)
    notify(listener, 'breaker', {
      subscription: subscription.name,
      state: 'open',
      reason: trouble.says,
    })
    await this.#station.refresh()
  }

  async #passed(count: number, probing: boolean): Promise<void> {
    this.#station.passes += count
    this.#count = Math.min(this.#station.subscription.batch.count, this.#count * 2)
    if (probing) await this.#recovered()
  }

  async #recovered(): Promise<void> {
    const { db, subscription, listener } = this.#station
    if (await recover(db, subscription.name)) {
      notify(listener, 'breaker', { subscription: subscription.name, state: 'closed' })
    }
    await this.#station.refresh()
  }

  async #rest(seen: number): Promise<void> {
    const { wake, pollMs, rate, state } = this.#station
    await this.#safely(async () => {
      await this.#settling
      await this.#leases.giveBackIdle()
      return true
    })
    const { held, probeAtMs, lanes } = state()
    const untilProbeMs = held ? Math.max(5, probeAtMs - performance.now()) : pollMs
    const untilRateMs =
      rate && this.#leases.lanes.length > 0
        ? rate.waitMs(this.#leases.lanes.length / lanes)
        : pollMs
    await wake.wait(Math.min(pollMs, untilProbeMs, untilRateMs), seen)
  }

  /** An error of the database ends a round, never the loop. */
  async #safely(work: () => Promise<boolean>): Promise<boolean> {
    try {
      const result = await work()
      this.#errorsInRow = 0
      return result
    } catch (error) {
      this.#doubt = true
      const { listener, subscription, wake } = this.#station
      notify(listener, 'error', { during: 'deliver', error, subscription: subscription.name })
      const slow = isConnectionError(error) ? 100 : errorPauseMs
      await wake.wait(Math.min(errorPauseMs, slow * ++this.#errorsInRow))
      return false
    }
  }
}

/** What of a batch goes to the sink; the rest has its outcome already. */
function toSend({ lane, read: { fresh, due } }: Batch, known: Result): Entry[] {
  const going = [...due]
  for (const entry of fresh) {
    if (entry.mark === 'held') known.set(entry, 'passed')
    else if (lane.beyond.has(entry.event.position)) known.set(entry, delivered())
    else if (entry.gone)
      known.set(entry, rejected({ code: 'HMD_EVENT_UNKNOWN', message: 'the event is gone' }))
    else going.push(entry)
  }
  return going
}

/** A dry run maps and checks, and sends nothing. */
function rehearse(sink: Station['subscription']['sink'], entries: readonly Entry[]): Result {
  return new Map(
    entries.map((entry) => {
      const problem = sink.validate?.(entry.event)
      return [entry, problem === undefined ? delivered() : rejected({ message: problem })]
    }),
  )
}

function troubleIn(result: Result): Trouble | undefined {
  let worst: Outcome | undefined
  for (const outcome of result.values()) {
    if (outcome === 'passed') continue
    if (outcome.outcome === 'misconfigured') worst = outcome
    else if (outcome.outcome === 'unavailable' && worst?.outcome !== 'misconfigured') {
      worst = (outcome.afterMs ?? 0) >= (worst?.afterMs ?? 0) ? outcome : worst
    }
  }
  if (worst === undefined) return undefined
  const cause = worst.outcome as Trouble['cause']
  return { cause, says: worst.message ?? worst.code ?? cause, afterMs: worst.afterMs ?? 0 }
}

function failedAggregates({ fresh, due }: LaneRead, result: Result): Set<string> {
  const failed = new Set<string>()
  for (const entry of [...fresh, ...due]) {
    const outcome = result.get(entry)
    if (outcome === 'passed' || (outcome !== undefined && outcome.outcome === 'retry'))
      failed.add(aggregateKey(entry))
  }
  return failed
}
