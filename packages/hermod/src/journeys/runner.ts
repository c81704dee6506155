/**
 * Runs journeys: a worker runs what is queued and has a handler here; the foreground runs the one that
 * is named. The lease is extended while it runs. The handler stops at the next check when the journey
 * is paused, cancelled, taken over, or when the process stops.
 */

import { randomUUID } from 'node:crypto'
import { bounded, statementMs } from '../bounded.ts'
import { type Database, isConnectionError } from '../database.ts'
import { type Listener, notify } from '../telemetry.ts'
import { Wake } from '../worker/wake.ts'
import {
  type Asked,
  type Ending,
  endJourney,
  type Journey,
  type JourneyKind,
  keepJourney,
  type Progress,
  type Takes,
  takeJourney,
} from './journey.ts'

/** The journey of a crashed runner is taken over after at most this time. */
const leaseMsMax = 10_000
const pollMs = 1_000
/** A starting worker delivers first; journeys wait this long. */
const firstMs = 200

export interface JourneyHandler {
  readonly kind: JourneyKind
  /** The subjects that this process can work on; all when left out. */
  readonly subjects?: (() => readonly string[]) | undefined
  /** At once in this process; 1 when left out. */
  readonly parallelMax?: number | undefined
  /** Continues from the journey's progress. Its return value is the result. */
  run(run: Run): Promise<object | undefined>
  /** Cleans up after a cancel; may be called again after a crash. */
  undo?(run: Run): Promise<void>
}

/** Why a handler was stopped: asked to, taken over, or the process ends. */
export class JourneyStopped extends Error {
  override readonly name = 'JourneyStopped'
  readonly why: 'pause' | 'cancel' | 'lost' | 'stop'

  constructor(why: JourneyStopped['why']) {
    super(`the journey was stopped: ${why}`)
    this.why = why
  }
}

/** One journey while this process runs it. */
export class Run {
  /** As it was taken. */
  readonly journey: Journey
  readonly db: Database
  readonly #owner: string
  readonly #leaseMs: number
  /** For the statements that keep the lease. */
  readonly #kept: Database
  readonly #listener: Listener
  #abort = new AbortController()
  readonly #startedMs = performance.now()
  readonly #doneBefore: number
  readonly #keeper: NodeJS.Timeout
  #progress: Progress
  #phase: string | null
  #why: JourneyStopped['why'] | undefined
  #undoing = false

  constructor(db: Database, journey: Journey, owner: string, leaseMs: number, listener: Listener) {
    this.db = db
    this.journey = journey
    this.#owner = owner
    this.#leaseMs = leaseMs
    this.#kept = bounded(db, statementMs(leaseMs))
    this.#listener = listener
    this.#progress = journey.progress
    this.#doneBefore = journey.progress.done ?? 0
    this.#phase = journey.phase
    this.#keeper = setInterval(() => void this.#keep().catch(() => {}), leaseMs / 4)
    if (journey.asked !== 'run') this.#halt(journey.asked)
  }

  /** Aborted when the handler must stop: pass it to whatever waits. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  get progress(): Progress {
    return this.#progress
  }

  get phase(): string | null {
    return this.#phase
  }

  /** Throws JourneyStopped when the handler must stop. Call it between pieces of work. */
  look(): void {
    if (this.#why !== undefined) throw new JourneyStopped(this.#why)
  }

  /** Saves progress and extends the lease in one statement. After a crash it continues here. Throws JourneyStopped. */
  async note(progress: Progress, phase?: string): Promise<void> {
    this.look()
    this.#progress = { ...this.#progress, ...progress, ...this.#speed(progress) }
    this.#phase = phase ?? this.#phase
    await this.#keep({ phase, progress: this.#progress })
    this.look()
  }

  /** Waits; ends early, with JourneyStopped, when the handler must stop. */
  async pause(ms: number): Promise<void> {
    this.look()
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer)
        this.signal.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      this.signal.addEventListener('abort', end)
    })
    this.look()
  }

  /** The process ends: another one can continue at once. */
  stop(): void {
    this.#halt('stop')
  }

  /** Ends or releases it in this state. False: another process has it now. */
  async end(state: Ending, told: { result?: object | undefined; error?: string | undefined }): Promise<boolean> {
    this.release()
    const mine = await endJourney(this.#kept, this.journey.id, this.#owner, state, told)
    if (mine) this.tell(state, told.error)
    return mine
  }

  /** From now on it cleans up after a cancel; further requests wait until that is done. */
  undoing(): Run {
    this.#undoing = true
    this.#why = undefined
    this.#abort = new AbortController()
    return this
  }

  release(): void {
    clearInterval(this.#keeper)
  }

  tell(state: Journey['state'], error?: string): void {
    const { id, kind, subject } = this.journey
    const event = { id, kind, subject, state, phase: this.#phase, progress: this.#progress }
    notify(this.#listener, 'journey', { ...event, error })
  }

  async #keep(more?: { phase?: string | undefined; progress?: Progress }): Promise<void> {
    const asked = await keepJourney(this.#kept, this.journey.id, this.#owner, this.#leaseMs, more)
    if (asked === undefined) this.#halt('lost')
    else if (asked !== 'run') this.#halt(asked)
    if (more !== undefined && asked !== undefined) this.tell('running')
  }

  #halt(why: Exclude<Asked, 'run'> | 'lost' | 'stop'): void {
    if (this.#undoing && why !== 'lost' && why !== 'stop') return
    // The first reason counts, but a journey that was taken over is left alone.
    if (this.#why === undefined || why === 'lost') this.#why = why
    this.#abort.abort(new JourneyStopped(why))
  }

  #speed({ done, total = this.#progress.total }: Progress): Progress {
    const seconds = (performance.now() - this.#startedMs) / 1000
    if (done === undefined || seconds < 0.2) return {}
    const ratePerSecond = Math.max(0, (done - this.#doneBefore) / seconds)
    if (total === undefined || ratePerSecond === 0) return { ratePerSecond: round(ratePerSecond) }
    const etaMs = Math.round((Math.max(0, total - done) / ratePerSecond) * 1000)
    return { ratePerSecond: round(ratePerSecond), etaMs }
  }
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

export interface RunnerContext {
  readonly db: Database
  readonly name: string
  readonly leaseMs: number
  readonly listener: Listener
  /** A function, because handlers can be added while it runs. */
  handlers(): readonly JourneyHandler[]
  /** Regular work beside journeys. */
  chores(): Promise<void>
  /** Called when it has stopped. */
  ended(): void
}

export class Runner {
  readonly #context: RunnerContext
  readonly #wake = new Wake()
  readonly #running = new Map<Run, Promise<void>>()
  #loop: Promise<void> = Promise.resolve()
  #stopping = false
  #chores: Promise<void> | undefined
  #choresMs = Number.NEGATIVE_INFINITY

  constructor(context: RunnerContext) {
    this.#context = context
  }

  start(): void {
    this.#loop = this.#run()
  }

  /** Wakes the runners: there may be a journey to take. */
  wake(): void {
    this.#wake.wake()
  }

  /** Handlers stop at their next check; other processes can take their journeys at once. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#wake.wake()
    await this.#loop
    await this.#chores
    for (const run of this.#running.keys()) run.stop()
    await Promise.all(this.#running.values())
    this.#context.ended()
  }

  /** Everything that is queued and can be begun now; true if there was something. */
  async takeAll(): Promise<boolean> {
    let took = false
    while (!this.#stopping && (await this.#take())) took = true
    return took
  }

  /** Waits until everything this runner has taken is done. */
  async idle(): Promise<void> {
    await Promise.all(this.#running.values())
  }

  /** One journey, here. False: nobody can take it now (it ended, or another process runs it). */
  async runHere(id: bigint): Promise<boolean> {
    const run = await this.#takeOne(this.#context.handlers(), id)
    if (run === undefined) return false
    await this.#running.get(run)
    return true
  }

  async #run(): Promise<void> {
    await this.#wake.wait(firstMs)
    while (!this.#stopping) {
      const seen = this.#wake.count
      try {
        this.#doChores()
        await this.takeAll()
      } catch (error) {
        notify(this.#context.listener, 'error', { during: 'journeys', error })
      }
      if (!this.#stopping) await this.#wake.wait(pollMs, seen)
    }
  }

  /** Runs beside the journeys, so that a silent engine delays nothing. */
  #doChores(): void {
    const nowMs = performance.now()
    if (this.#chores !== undefined || nowMs - this.#choresMs < pollMs * 0.9) return
    this.#choresMs = nowMs
    this.#chores = this.#context
      .chores()
      .catch((error) => notify(this.#context.listener, 'error', { during: 'journeys', error }))
      .finally(() => {
        this.#chores = undefined
      })
  }

  async #take(): Promise<boolean> {
    const busy = (kind: JourneyKind) => [...this.#running.keys()].filter(({ journey }) => journey.kind === kind).length
    const free = this.#context.handlers().filter(({ kind, parallelMax = 1 }) => busy(kind) < parallelMax)
    return (await this.#takeOne(free)) !== undefined
  }

  async #takeOne(handlers: readonly JourneyHandler[], id?: bigint): Promise<Run | undefined> {
    const { db, name, listener } = this.#context
    const takes = handlers.flatMap(({ kind, subjects }): Takes[] =>
      subjects === undefined ? [{ kind, subject: null }] : subjects().map((subject) => ({ kind, subject })),
    )
    if (takes.length === 0) return undefined
    const owner = `${name}#${randomUUID().slice(0, 8)}`
    const leaseMs = Math.min(this.#context.leaseMs, leaseMsMax)
    const journey = await takeJourney(bounded(db, statementMs(leaseMs)), owner, takes, leaseMs, id)
    if (journey === undefined) return undefined
    const handler = handlers.find(
      ({ kind, subjects }) => kind === journey.kind && (subjects === undefined || subjects().includes(journey.subject)),
    ) as JourneyHandler
    const run = new Run(db, journey, owner, leaseMs, listener)
    const done = this.#carryOut(handler, run).finally(() => {
      this.#running.delete(run)
      this.#wake.wake()
    })
    this.#running.set(run, done)
    return run
  }

  /** Never throws: an error is reported and ends the journey, unless the database was unreachable. */
  async #carryOut(handler: JourneyHandler, run: Run): Promise<void> {
    try {
      run.look()
      run.tell('running')
      const result = await handler.run(run)
      await run.end('succeeded', { result })
    } catch (error) {
      await this.#stopped(handler, run, error).catch((cause) => this.#tell(run, cause))
    } finally {
      run.release()
    }
  }

  async #stopped(handler: JourneyHandler, run: Run, error: unknown): Promise<void> {
    const why = error instanceof JourneyStopped ? error.why : undefined
    if (why === 'lost') return
    if (why === 'stop') await run.end('queued', {})
    else if (why === 'pause') await run.end('paused', {})
    else if (why === 'cancel') {
      await handler.undo?.(run.undoing())
      await run.end('cancelled', {})
    } else if (isConnectionError(error)) {
      // The outcome is unknown: the lease expires, and another process continues.
      this.#tell(run, error)
    } else {
      await run.end('failed', { error: error instanceof Error ? error.message : String(error) })
      this.#tell(run, error)
    }
  }

  #tell({ journey: { kind, id } }: Run, error: unknown): void {
    notify(this.#context.listener, 'error', { during: `${kind} ${id}`, error })
  }
}
