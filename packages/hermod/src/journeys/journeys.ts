/**
 * `outbox.journeys`: long work that survives its process, with progress. It is started here, run by
 * workers (or in the foreground), and paused, resumed and cancelled by whoever decides.
 */
import type { Database } from '../database.ts'
import type { Decision } from '../desk/audit.ts'
import type { Listener } from '../telemetry.ts'
import { type ControlResult, control, journeyNamed } from './control.ts'
import { findJourney, isEnded, type Journey, type JourneyFilter, listJourneys } from './journey.ts'
import { planReplay, type ReplayDryRun, type ReplayStart, replayHandler, startReplay } from './replay.ts'
import type { ReplayFilter, ReplayOptions } from './replay-options.ts'
import { type JourneyHandler, Runner } from './runner.ts'

const watchMs = 250

export interface WatchOptions {
  readonly signal?: AbortSignal | undefined
  /** Called when something changed. */
  readonly onProgress?: ((journey: Journey) => void) | undefined
}

export class Journeys {
  readonly #db: Database
  readonly #listener: Listener
  readonly #handlers: JourneyHandler[] = [replayHandler]
  readonly #chores: (() => Promise<void>)[] = []
  readonly #runners = new Set<Runner>()

  constructor(db: Database, listener: Listener) {
    this.#db = db
    this.#listener = listener
  }

  /** Counts what a replay would send; nothing is written. */
  plan(subscription: string, options: ReplayFilter): Promise<ReplayDryRun> {
    return planReplay(this.#db, subscription, options)
  }

  /** Sends events again, through the same lanes; with `dryRun` it only counts. */
  replay(subscription: string, options: ReplayOptions & { readonly dryRun: true }): Promise<ReplayDryRun>
  replay(subscription: string, options: ReplayOptions): Promise<ReplayStart>
  async replay(subscription: string, options: ReplayOptions): Promise<ReplayStart | ReplayDryRun> {
    if (options?.dryRun === true) return this.plan(subscription, options)
    const started = await startReplay(this.#db, subscription, options)
    this.wake()
    return started
  }

  /** Newest first. */
  list(filter?: JourneyFilter): Promise<Journey[]> {
    return listJourneys(this.#db, filter)
  }

  show(id: bigint): Promise<Journey | undefined> {
    return findJourney(this.#db, id)
  }

  pause(id: bigint, by: Decision): Promise<ControlResult> {
    return control(this.#db, 'pause', id, by)
  }

  /** Continues where it stopped; failed journeys too. */
  async resume(id: bigint, by: Decision): Promise<ControlResult> {
    const result = await control(this.#db, 'resume', id, by)
    this.wake()
    return result
  }

  async cancel(id: bigint, by: Decision): Promise<ControlResult> {
    const result = await control(this.#db, 'cancel', id, by)
    this.wake()
    return result
  }

  /** From now on, workers of this process and run() can run this kind. */
  handle(handler: JourneyHandler): this {
    this.#handlers.push(handler)
    this.wake()
    return this
  }

  /** Called about once a second by the runners of this process. It must not throw. */
  also(work: () => Promise<void>): this {
    this.#chores.push(work)
    return this
  }

  /** A runner for a worker of this process. */
  runner(name: string, leaseMs: number): Runner {
    const runner: Runner = new Runner({
      db: this.#db,
      name,
      leaseMs,
      listener: this.#listener,
      handlers: () => this.#handlers,
      chores: async () => {
        for (const chore of this.#chores) await chore()
      },
      ended: () => this.#runners.delete(runner),
    })
    this.#runners.add(runner)
    return runner
  }

  /** Wakes the runners: there may be a journey to take. */
  wake(): void {
    for (const runner of this.#runners) runner.wake()
  }

  /** Runs it in this process unless another one does. Returns when it has ended or is paused. */
  async run(id: bigint, options: WatchOptions & { leaseMs?: number } = {}): Promise<Journey> {
    const runner = this.runner(`foreground:${process.pid}`, options.leaseMs ?? 10_000)
    const stop = () => void runner.stop()
    options.signal?.addEventListener('abort', stop)
    try {
      const taking = setInterval(() => void runner.runHere(id).catch(() => {}), 1_000)
      void runner.runHere(id).catch(() => {})
      try {
        return await this.wait(id, options)
      } finally {
        clearInterval(taking)
      }
    } finally {
      options.signal?.removeEventListener('abort', stop)
      await runner.stop()
    }
  }

  /** Waits until it has ended or is paused, wherever it runs. */
  async wait(id: bigint, { signal, onProgress }: WatchOptions = {}): Promise<Journey> {
    let last = ''
    while (true) {
      const journey = await journeyNamed(this.#db, id)
      const text = JSON.stringify([journey.state, journey.phase, journey.progress])
      if (text !== last) onProgress?.(journey)
      last = text
      if (isEnded(journey) || journey.state === 'paused' || signal?.aborted) return journey
      await new Promise((resolve) => setTimeout(resolve, watchMs))
    }
  }
}
