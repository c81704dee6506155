/**
 * Keeps numbering what commits: at once while there is something, ever more slowly while there is
 * not. Every worker runs one; whoever gets the lock does the step.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type Database, isConnectionError } from '../database.ts'
import { HermodError } from '../errors.ts'
import { firstPieceRows, type News, pieceRows, type Step, sequence } from '../flow/sequence.ts'
import { type Listener, notify } from '../telemetry.ts'
import { tell } from './news.ts'
import type { Wake } from './wake.ts'

export interface SequencerOptions {
  readonly db: Database
  readonly listener: Listener
  /** Woken when something may have committed. */
  readonly wake: Wake
  readonly busyPollMs: number
  readonly pollMs: number
  /** Called after a step that numbered something. */
  numbered(news: News | undefined): void
  /** Are there other workers to tell? */
  others(): boolean
}

export class Sequencer {
  readonly #options: SequencerOptions
  #stopping = false
  #telling = false
  #untold = false
  #refusal: string | undefined
  #rows = firstPieceRows

  constructor(options: SequencerOptions) {
    this.#options = options
  }

  stop(): void {
    this.#stopping = true
  }

  async run(): Promise<void> {
    const { wake, busyPollMs, pollMs } = this.#options
    let idleMs = busyPollMs
    while (!this.#stopping) {
      const seen = wake.count
      const startedMs = performance.now()
      const step = await this.#step()
      const tookMs = performance.now() - startedMs
      if (step?.more) continue
      if (step !== undefined && step.numbered > 0) {
        // As long as the step took, whoever calls meanwhile: what commits in between is one step, and
        // small steps never take more than half of the machine.
        idleMs = busyPollMs
        await pause(Math.max(1, Math.min(busyPollMs, tookMs)))
        // A single event has probably no follower yet: who commits one calls, or is found by the poll.
        if (step.numbered > 1) continue
      }
      await wake.wait(idleMs, seen)
      idleMs = seen === wake.count ? Math.min(pollMs, idleMs * 1.5) : busyPollMs
    }
  }

  /** Numbers everything there is; for runOnce and tests. */
  async all(deadlineMs: number): Promise<number> {
    let count = 0
    for (;;) {
      const step = await sequence(this.#options.db)
      count += step?.numbered ?? 0
      if (!step?.more || performance.now() > deadlineMs) return count
    }
  }

  async #step(): Promise<Step | undefined> {
    const { db, listener, numbered } = this.#options
    const startedMs = performance.now()
    try {
      const step = await sequence(db, this.#rows)
      this.#rows = step?.more ? Math.min(pieceRows, this.#rows * 2) : firstPieceRows
      this.#refusal = undefined
      if (step === undefined) return undefined
      const durationMs = performance.now() - startedMs
      notify(listener, 'step', {
        numbered: step.numbered,
        scheduled: 0,
        durationMs,
        position: step.head,
      })
      if (step.newEpoch) this.#tellEpoch(step)
      if (step.numbered > 0) {
        numbered(step.news)
        this.#tellOthers(step.news)
      }
      return step
    } catch (error) {
      await this.#failed(error)
      return undefined
    }
  }

  #tellEpoch(step: Step): void {
    notify(this.#options.listener, 'warning', {
      code: 'HMD_RESTORED',
      message: `a new timeline: positions continue above ${step.head}; a tail that was delivered may be lost here`,
    })
  }

  /** One at a time; what is numbered meanwhile is told in one go afterwards. */
  #tellOthers(news: News | undefined): void {
    const { db, others } = this.#options
    if (!others()) return
    if (this.#telling) {
      this.#untold = true
      return
    }
    this.#telling = true
    this.#untold = false
    tell(db, { what: 'numbered', news }).finally(() => {
      this.#telling = false
      if (this.#untold) this.#tellOthers(undefined)
    })
  }

  async #failed(error: unknown): Promise<void> {
    const { listener, wake } = this.#options
    const code = error instanceof HermodError ? error.code : undefined
    // A refusal is told once, not at every poll.
    if (code === undefined || code !== this.#refusal)
      notify(listener, 'error', { during: 'step', error })
    this.#refusal = code
    await wake.wait(isConnectionError(error) ? 200 : 1_000)
  }
}
