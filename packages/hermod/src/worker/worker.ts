/**
 * A worker: one numbering loop, a few claim loops per subscription, a heartbeat and upkeep. Start it in as
 * many processes as you like; `stop` finishes what is in flight and gives the lanes back.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Database } from '../database.ts'
import { HermodError } from '../errors.ts'
import type { EventDefinitions } from '../event-definitions.ts'
import { compileFilter } from '../filter.ts'
import { Kinds } from '../flow/kinds.ts'
import type { News } from '../flow/sequence.ts'
import type { Journeys } from '../journeys/journeys.ts'
import type { Runner } from '../journeys/runner.ts'
import type { ResolvedSubscription, ResolvedWorkerOptions } from '../options.ts'
import { type Listener, notify } from '../telemetry.ts'
import { Listen } from './listen.ts'
import { Loop } from './loop.ts'
import { hear } from './news.ts'
import { Numbering } from './numbering.ts'
import { Poller } from './poller.ts'
import { Rate } from './rate.ts'
import { heartbeatMs, Registry } from './registry.ts'
import type { Station } from './station.ts'
import { Turnstile } from './turnstile.ts'
import { Upkeep } from './upkeep/upkeep.ts'
import { Wake } from './wake.ts'

export interface WorkerContext {
  /** Every statement is bounded below the lease. */
  readonly db: Database
  /** For statements that may take long. */
  readonly upkeepDb: Database
  readonly subscriptions: readonly ResolvedSubscription[]
  readonly options: ResolvedWorkerOptions
  readonly listener: Listener
  readonly definitions: EventDefinitions | undefined
  readonly random: () => number
  readonly journeys: Journeys
}

const earlyBeatsMs = [50, 200]

/** A subscription and the claim loops that serve it here. */
interface Crew {
  readonly station: Station
  readonly loops: readonly Loop[]
}

export class Worker {
  readonly id = randomUUID()
  readonly name: string
  readonly #context: WorkerContext
  readonly #registry: Registry
  readonly #numbering: Numbering
  readonly #listen: Listen | undefined
  readonly #upkeep: Upkeep | undefined
  readonly #journeys: Runner
  readonly #committed = new Wake()
  readonly #abort = new AbortController()
  readonly #crews: readonly Crew[]
  #running: Promise<unknown> = Promise.resolve()
  #heartbeat: NodeJS.Timeout | undefined
  #early: readonly NodeJS.Timeout[] = []
  #stopped: Promise<void> | undefined

  constructor(context: WorkerContext) {
    const { db, options, listener, subscriptions } = context
    this.#context = context
    this.name = options.name ?? `${hostname()}:${process.pid}`
    this.#registry = new Registry(db, this.id, this.name, subscriptions)
    this.#numbering = new Numbering({
      db,
      listener,
      wake: this.#committed,
      busyPollMs: options.busyPollMs,
      pollMs: options.pollMs,
      numbered: (news) => this.#tellLoops(news),
      others: () => this.#registry.others,
    })
    this.#listen = options.listen ? new Listen(db, listener, (message) => this.#heard(message?.payload)) : undefined
    this.#upkeep = options.upkeep ? new Upkeep(context.upkeepDb, options, listener) : undefined
    this.#journeys = context.journeys.runner(this.name, options.leaseMs)
    const turnstile = new Turnstile(options.concurrency)
    this.#crews = subscriptions.map((subscription) => this.#crewOf(subscription, turnstile))
  }

  /** Looks for new commits now; called after local commits. */
  wake(): void {
    this.#committed.wake()
  }

  /** Every loop runs until stop(). */
  async start(): Promise<void> {
    await this.#registry.beat()
    this.#heartbeat = setInterval(() => this.#beat(), heartbeatMs)
    // Workers that start together learn of each other before one has taken all lanes for a second.
    this.#early = earlyBeatsMs.map((ms) => setTimeout(() => this.#beat(), ms))
    this.#listen?.start()
    this.#upkeep?.start()
    this.#journeys.start()
    this.#running = Promise.all([this.#numbering.run(), this.#runLoops()])
  }

  /** After the first step: usually there is nothing to claim before it, and statements are slow the first time. */
  async #runLoops(): Promise<void> {
    await this.#numbering.begun()
    await Promise.all(this.#loops.map((loop) => loop.run()))
  }

  /** Delivers everything there is, or until the deadline; for cron and serverless. */
  async once(deadlineMs: number): Promise<void> {
    const untilMs = performance.now() + deadlineMs
    const cut = setTimeout(() => this.#abort.abort(), deadlineMs)
    try {
      await this.#journeys.takeAll()
      await this.#registry.beat()
      let worked = true
      while (worked && performance.now() < untilMs) {
        const numbered = await this.#numbering.all(untilMs)
        // All loops end before lanes are given back, even if one fails.
        const runs = await Promise.allSettled(this.#loops.map((loop) => loop.runUntilIdle(untilMs)))
        for (const run of runs) if (run.status === 'rejected') throw run.reason
        worked = numbered > 0 || runs.some((run) => run.status === 'fulfilled' && run.value)
      }
      // Delivery comes first; upkeep gets what is left of the time.
      if (performance.now() < untilMs) await this.#upkeep?.once()
    } finally {
      clearTimeout(cut)
      await Promise.all(this.#loops.map((loop) => loop.end()))
      await this.#journeys.stop()
      await this.#registry.leave()
    }
  }

  /** Finishes calls in flight within the grace period, then gives lanes back. Calling it twice is harmless. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    this.#registry.drain()
    this.#numbering.stop()
    for (const loop of this.#loops) loop.stop()
    const journeys = this.#journeys.stop()
    clearInterval(this.#heartbeat)
    for (const beat of this.#early) clearTimeout(beat)
    const grace = setTimeout(() => this.#abort.abort(), this.#context.options.stopGraceMs)
    this.#committed.wake()
    await this.#running
    await journeys
    clearTimeout(grace)
    await this.#upkeep?.stop()
    await this.#listen?.stop()
    await this.#registry.leave().catch((error) => this.#tell('stop', error))
  }

  /** News of another worker's step causes no step here: else every step would cause one in every worker. */
  #heard(text: string | undefined): void {
    const heard = hear(text)
    if (heard.what === 'committed') this.#committed.wake()
    else this.#tellLoops(heard.news)
    // The connection is new: notifications may have been lost.
    if (text === undefined) this.#tellLoops(undefined)
  }

  get #loops(): readonly Loop[] {
    return this.#crews.flatMap(({ loops }) => loops)
  }

  /** Wakes only the loops concerned. Events that a subscription does not listen to are skipped at its next poll. */
  #tellLoops(news: News | undefined): void {
    for (const { station, loops } of this.#crews) {
      if (news !== undefined && !listensTo(station, news.kinds)) continue
      const lanes = station.subscription.lanes === 1 ? [0] : news?.lanes
      const leased = new Set(loops.flatMap(({ lanes }) => lanes))
      const free = news === undefined || (lanes ?? []).some((lane) => !leased.has(lane))
      for (const loop of loops) loop.hear(news && lanes, free)
    }
  }

  #beat(): void {
    this.#registry.beat().catch((error) => this.#tell('heartbeat', error))
  }

  #tell(during: string, error: unknown): void {
    notify(this.#context.listener, 'error', { during, error })
  }

  #crewOf(subscription: ResolvedSubscription, turnstile: Turnstile): Crew {
    const { concurrency } = this.#context.options
    const count = subscription.lanes === 1 ? 1 : Math.min(concurrency, subscription.inFlightMax ?? concurrency)
    const station = this.#station(subscription, turnstile)
    const share = (index: number) => {
      const { lanes, workers } = station.state()
      const mine = Math.ceil(lanes / workers)
      return Math.floor(mine / count) + (index < mine % count ? 1 : 0)
    }
    const loops = Array.from({ length: count }, (_, index) => new Loop(station, () => share(index)))
    return { station, loops }
  }

  #station(subscription: ResolvedSubscription, turnstile: Turnstile): Station {
    const { db, options, listener, definitions, random } = this.#context
    const { rate, sink } = subscription
    let warned = false
    const station: Omit<Station, 'poller'> & { poller: Poller | undefined } = {
      db,
      subscription,
      listener,
      definitions,
      random,
      turnstile,
      passes: 0,
      owner: this.id,
      workerName: this.name,
      leaseMs: options.leaseMs,
      pollMs: options.pollMs,
      busyPollMs: options.busyPollMs,
      kinds: new Kinds(),
      poller: undefined,
      rate: rate === undefined ? undefined : new Rate(rate.perSecond),
      abort: this.#abort.signal,
      listens: compileFilter(subscription),
      state: () => {
        const state = this.#registry.state(subscription.name)
        if (state.outdated && !warned) this.#warnOutdated(subscription)
        warned ||= state.outdated
        return state
      },
      refresh: () => this.#registry.beat(),
    }
    if (sink.poll !== undefined) station.poller = new Poller(station)
    return station
  }

  #warnOutdated({ name, revision }: ResolvedSubscription): void {
    const { message, code } = new HermodError(
      'HMD_SUBSCRIPTION_OUTDATED',
      `${name} has a newer revision than ${revision}: this worker no longer serves it`,
    )
    notify(this.#context.listener, 'warning', { code, message, subscription: name })
  }
}

/** A kind that this worker has not seen yet may match. */
function listensTo({ kinds, listens }: Station, codes: readonly number[]): boolean {
  return codes.some((code) => {
    const kind = kinds.names.get(String(code))
    return kind === undefined || listens(...kind)
  })
}
