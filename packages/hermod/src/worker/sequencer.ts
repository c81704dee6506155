/**
 * Keeps numbering what commits: at once while there is something, ever more slowly while there is
 * not. Every worker runs one; whoever gets the lock does the step.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type Database, isConnectionError } from '../database.ts'
import { HermodError } from '../errors.ts'
import { firstPieceRows, type News, pieceRows, type Step, sequence } from '../flow/sequence.ts'
import { type Listener, notify } from '../telemetry.ts'
import type { Loop } from './loop.ts'
import { tell } from './news.ts'
import { Wake } from './wake.ts'

export interface SequencerOptions {
  readonly db: Database
  readonly listener: Listener
  /** Woken when something may have committed. */
  readonly wake: Wake
  readonly busyPollMs: number
  readonly pollMs: number
  /** Called after a step that numbered something; `by`: the loop whose read came right after it. */
  numbered(news: News | undefined, by: Loop | undefined): void
  /** Is there a loop that is about to read, and takes a step along? */
  offer(): boolean
  /** Are there other workers to tell? */
  others(): boolean
}

/** Steps up to this size are expected to be quick. */
const lentRowsMax = 500

/** A step that a loop takes along with its next read. */
export interface LentStep {
  readonly rows: number
  ended(step: Step | undefined): void
  failed(error: unknown): void
}

export class Sequencer {
  readonly #options: SequencerOptions
  #state: 'new' | 'running' | 'stopped' = 'new'
  #telling = false
  #untold = false
  #refusal: string | undefined
  #rows = firstPieceRows
  /** The wake-up that the last step has answered. */
  #seen = -1
  #count = 0
  #last: Step | undefined
  #notBeforeMs = 0
  #underway = false
  #lent = false
  readonly #ended = new Wake()

  constructor(options: SequencerOptions) {
    this.#options = options
  }

  stop(): void {
    this.#state = 'stopped'
  }

  async run(): Promise<void> {
    const { wake, busyPollMs, pollMs } = this.#options
    let idleMs = busyPollMs
    if (this.#state === 'new') this.#state = 'running'
    while (this.#running) {
      const step = await this.#next()
      if (step?.more) continue
      if (step !== undefined && step.numbered > 0) {
        idleMs = busyPollMs
        await pause(Math.max(1, this.#notBeforeMs - performance.now()))
        // A single event has probably no follower yet: who commits one calls, or is found by the poll.
        if (step.numbered > 1) continue
      }
      const seen = this.#seen
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

  /** For a loop that reads anyway. Undefined: nothing to number, or somebody is at it. */
  lend(by: Loop): LentStep | undefined {
    const free = this.#running && !this.#underway && this.#refusal === undefined
    return free && this.#small && this.#due ? this.#begin(by) : undefined
  }

  get #running(): boolean {
    return this.#state === 'running'
  }

  /** A large step is made beside the reads, not before one. */
  get #small(): boolean {
    return !this.#last?.more && (this.#last?.numbered ?? 0) <= lentRowsMax
  }

  /** Something may have committed since the last step, which was long enough ago. */
  get #due(): boolean {
    const followers = this.#last !== undefined && this.#last.numbered > 1
    const called = this.#seen !== this.#options.wake.count
    return (called || followers) && performance.now() >= this.#notBeforeMs
  }

  /** Offered to a loop that is about to read, else made here. */
  async #next(): Promise<Step | undefined> {
    const { busyPollMs, offer, db } = this.#options
    const count = this.#count
    const ended = this.#ended.count
    const lends = this.#small && this.#due && this.#refusal === undefined
    // A busy loop that took the last step along is probably about to come for the next.
    if (lends && (offer() || this.#lent)) await this.#ended.wait(busyPollMs, ended)
    while (this.#underway) await this.#ended.wait(busyPollMs)
    if (this.#count !== count || !this.#running) return this.#last
    const own = this.#begin(undefined)
    try {
      own.ended(await sequence(db, own.rows))
    } catch (error) {
      own.failed(error)
      await this.#options.wake.wait(isConnectionError(error) ? 200 : 1_000)
    }
    return this.#last
  }

  #begin(by: Loop | undefined): LentStep {
    const startedMs = performance.now()
    this.#underway = true
    this.#lent = by !== undefined
    this.#seen = this.#options.wake.count
    const end = (step: Step | undefined) => {
      this.#last = step
      this.#count++
      this.#underway = false
      this.#ended.wake()
    }
    return {
      rows: this.#rows,
      ended: (step) => {
        this.#take(step, startedMs, by)
        end(step)
      },
      failed: (error) => {
        // Of a lent one the loop tells what went wrong; a refusal is the numbering's own.
        if (by === undefined || error instanceof HermodError) this.#failed(error)
        end(undefined)
      },
    }
  }

  #take(step: Step | undefined, startedMs: number, by: Loop | undefined): void {
    const { listener, numbered, busyPollMs } = this.#options
    this.#rows = step?.more ? Math.min(pieceRows, this.#rows * 2) : firstPieceRows
    this.#refusal = undefined
    const durationMs = performance.now() - startedMs
    // As long as it took, whoever calls meanwhile: what commits in between is one step, and small
    // steps never take more than half of the machine.
    const gathers = by === undefined && step !== undefined && step.numbered > 0 && !step.more
    this.#notBeforeMs = gathers ? performance.now() + Math.min(busyPollMs, durationMs) : 0
    if (step === undefined) return
    const { numbered: count, head: position } = step
    notify(listener, 'step', { numbered: count, scheduled: 0, durationMs, position })
    if (step.newEpoch) this.#tellEpoch(step)
    if (count === 0) return
    numbered(step.news, by)
    this.#tellOthers(step.news)
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

  #failed(error: unknown): void {
    const { listener } = this.#options
    const code = error instanceof HermodError ? error.code : undefined
    // A refusal is told once, not at every poll.
    if (code === undefined || code !== this.#refusal)
      notify(listener, 'error', { during: 'step', error })
    this.#refusal = code
  }
}
