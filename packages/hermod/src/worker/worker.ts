/**
 * A worker: one numbering loop, a few claim loops per subscription, a heartbeat and upkeep. Start it in as
 * many processes as you like; `stop` finishes what is in flight and gives the lanes back.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Database } from '../database.ts'
import type { EventDefinitions } from '../event-definitions.ts'
import { compileFilter } from '../filter.ts'
import { Kinds } from '../flow/kinds.ts'
import type { Journeys } from '../journeys/journeys.ts'
import type { Runner } from '../journeys/runner.ts'
import type { ResolvedSubscription, ResolvedWorkerOptions } from '../options.ts'
import type { SinkKinds } from '../sink-kinds.ts'
import { type Listener, notify } from '../telemetry.ts'
import { Crew } from './crew.ts'
import { Crews } from './crews.ts'
import { Listen } from './listen.ts'
import { Lookout } from './lookout.ts'
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
  readonly kinds: SinkKinds
}

const earlyBeatsMs = [50, 200]

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
  readonly #turnstile: Turnstile
  readonly #kinds = new Kinds()
  readonly #crews: Crews
  readonly #lookout: Lookout
  #running: Promise<unknown> = Promise.resolve()
  #heartbeat: NodeJS.Timeout | undefined
  #early: readonly NodeJS.Timeout[] = []
  #stopped: Promise<void> | undefined

  constructor(context: WorkerContext) {
    const { db, options, listener, subscriptions } = context
    this.#context = context
    this.name = options.name ?? `${hostname()}:${process.pid}`
    this.#registry = new Registry(db, this.id, this.name, () => this.#crews.serving)
    this.#numbering = new Numbering({
      db,
      listener,
      wake: this.#committed,
      busyPollMs: options.busyPollMs,
      pollMs: options.pollMs,
      numbered: (news) => this.#lookout.tell(news),
      others: () => this.#registry.others,
    })
    this.#listen = options.listen ? new Listen(db, listener, (message) => this.#heard(message?.payload)) : undefined
    this.#upkeep = options.upkeep ? new Upkeep(context.upkeepDb, options, listener) : undefined
    this.#journeys = context.journeys.runner(this.name, options.leaseMs)
    this.#turnstile = new Turnstile(options.concurrency)
    const { kinds } = context
    const crew = (subscription: ResolvedSubscription) => this.#crewOf(subscription)
    const changed = () => this.#lookout.changed()
    this.#lookout = new Lookout({
      db,
      kinds: this.#kinds,
      listener,
      pollMs: options.pollMs,
      busyPollMs: options.busyPollMs,
      crews: () => this.#crews.all,
      crew: (name) => this.#crews.named(name),
      state: ({ subscription }) => this.#registry.state(subscription),
      newEpoch: () => void this.#newEpoch().catch((error) => this.#tell('heartbeat', error)),
    })
    this.#crews = new Crews({ db, kinds, registry: this.#registry, listener, options, crew, changed }, subscriptions)
  }

  get options(): ResolvedWorkerOptions {
    return this.#context.options
  }

  /** Serves a subscription from now on, beside the others. What goes wrong is told to the listener. */
  async serve(subscription: ResolvedSubscription): Promise<void> {
    await this.#crews.serve(subscription)
    this.#beat()
  }

  /** Serves it no more; resolves when its calls have ended and its lanes are given back. */
  async unserve(name: string): Promise<void> {
    await this.#crews.unserve(name)
  }

  /** A kind of sink was registered: there may be subscriptions of it. */
  reconsider(): void {
    this.#crews.reconsider()
    this.#beat()
  }

  /** Looks for new commits now; called after local commits. */
  wake(): void {
    this.#committed.wake()
  }

  /** Every loop runs until stop(). */
  async start(): Promise<void> {
    await this.#follow()
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
    if (this.#stopped !== undefined) return
    this.#crews.run()
    await this.#lookout.run()
  }

  /** Delivers everything there is, or until the deadline; for cron and serverless. */
  async once(deadlineMs: number): Promise<void> {
    const untilMs = performance.now() + deadlineMs
    const cut = setTimeout(() => this.#abort.abort(), deadlineMs)
    try {
      await this.#journeys.takeAll()
      await this.#follow()
      let worked = true
      while (worked && performance.now() < untilMs) {
        const numbered = await this.#numbering.all(untilMs)
        // All of them end before lanes are given back, also when one fails.
        const loops = (await this.#lookout.waiting()).flatMap((crew) => crew.loops)
        const runs = await Promise.allSettled(loops.map((loop) => loop.runUntilIdle(untilMs)))
        for (const run of runs) if (run.status === 'rejected') throw run.reason
        worked = numbered > 0 || runs.some((run) => run.status === 'fulfilled' && run.value)
      }
      // Delivery comes first; upkeep gets what is left of the time.
      if (performance.now() < untilMs) await this.#upkeep?.once()
    } finally {
      clearTimeout(cut)
      await Promise.all([...this.#crews.all].flatMap(({ present }) => present).map((loop) => loop.end()))
      await this.#crews.end()
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
    this.#lookout.stop()
    const crews = this.#crews.end()
    const journeys = this.#journeys.stop()
    clearInterval(this.#heartbeat)
    for (const beat of this.#early) clearTimeout(beat)
    await this.#running
    await crews
    await journeys
    await this.#upkeep?.stop()
    await this.#listen?.stop()
    await this.#registry.leave().catch((error) => this.#tell('stop', error))
  }

  /** News of another worker's step causes no step here: else every step would cause one in every worker. */
  #heard(text: string | undefined): void {
    const heard = hear(text)
    if (heard.what === 'committed') this.#committed.wake()
    else if (heard.what === 'defined') this.#beat()
    else this.#lookout.tell(heard.news)
    // The connection is new: what was said meanwhile is lost.
    if (text === undefined) this.#lookout.tell(undefined)
  }

  #beat(): void {
    this.#follow().catch((error) => this.#tell('heartbeat', error))
  }

  /** Tells that this worker lives, and does what the database says. */
  async #follow(): Promise<void> {
    await this.#registry.beat()
    await this.#crews.follow()
  }

  /** After a failover nothing that was read before counts. */
  async #newEpoch(): Promise<void> {
    await this.#registry.beatAnew()
    await this.#crews.newEpoch()
  }

  #tell(during: string, error: unknown): void {
    notify(this.#context.listener, 'error', { during, error })
  }

  #crewOf(subscription: ResolvedSubscription): Crew {
    const { concurrency } = this.#context.options
    const count = subscription.lanes === 1 ? 1 : Math.min(concurrency, subscription.inFlightMax ?? concurrency)
    const station = (abort: AbortSignal) => this.#station(subscription, AbortSignal.any([this.#abort.signal, abort]))
    return new Crew(subscription, count, station)
  }

  #station(subscription: ResolvedSubscription, abort: AbortSignal): Station {
    const { db, options, listener, definitions, random } = this.#context
    const { rate, sink } = subscription
    const station: Omit<Station, 'poller'> & { poller: Poller | undefined } = {
      db,
      subscription,
      listener,
      definitions,
      random,
      turnstile: this.#turnstile,
      passes: 0,
      owner: this.id,
      workerName: this.name,
      leaseMs: options.leaseMs,
      pollMs: options.pollMs,
      busyPollMs: options.busyPollMs,
      kinds: this.#kinds,
      poller: undefined,
      rate: rate === undefined ? undefined : new Rate(rate.perSecond),
      abort,
      listens: compileFilter(subscription),
      state: () => this.#registry.state(subscription),
      // A loop must not wait for what follows: it may be its own end.
      refresh: () =>
        this.#registry.beat().then(() => void this.#crews.follow().catch((error) => this.#tell('heartbeat', error))),
    }
    if (sink.poll !== undefined) station.poller = new Poller(station)
    return station
  }
}
