/**
 * Keeps numbering what commits: at once while there is something, ever more slowly while there is
 * not. Every worker runs one; whoever gets the lock does the step. A small step is lent to a claim
 * loop that is about to read: one statement does both (flow/turn.ts).
 */
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
  /** How long to wait for a loop that takes a step along with its next read; 0: there is none. */
  offer(): number
  /** Are there other workers to tell? */
  others(): boolean
}

/** Steps up to this size are expected to be quick. */
const lentRowsMax = 500
/** What was numbered before is not kept waiting for longer. */
const beginMs = 100
/** Events that follow each other this closely are looked for at once. */
const closeMs = 5
/** What is further apart is not waited for. */
const gapMsMax = 1_000

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
  /** When to look again, whether somebody has called or not. */
  #dueAtMs = 0
  #emptyInRow = 0
  /** About so long after one event comes the next. */
  #gapMs = gapMsMax
  #tookAtMs = performance.now()
  #underway = false
  readonly #ended = new Wake()

  constructor(options: SequencerOptions) {
    this.#options = options
  }

  stop(): void {
    this.#state = 'stopped'
  }

  async run(): Promise<void> {
    if (this.#state === 'new') this.#state = 'running'
    while (this.#running) {
      const step = await this.#next()
      if (!step?.more) await this.#untilDue()
    }
  }

  /** Until its first step has ended, or is a long one. */
  begun(): Promise<void> {
    return this.#ended.wait(beginMs, 0)
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
    const called = this.#seen !== this.#options.wake.count
    const nowMs = performance.now()
    return (called || nowMs >= this.#dueAtMs) && nowMs >= this.#notBeforeMs
  }

  async #untilDue(): Promise<void> {
    const { wake } = this.#options
    while (this.#running && !this.#due) {
      const nowMs = performance.now()
      const restMs = Math.ceil(this.#notBeforeMs - nowMs)
      // While it rests a call changes nothing; stop() ends the rest too.
      if (restMs > 0) await wake.wait(restMs)
      else await wake.wait(Math.max(1, this.#dueAtMs - nowMs), this.#seen)
    }
  }

  /** By a loop that is about to read, else by itself. */
  async #next(): Promise<Step | undefined> {
    const { busyPollMs, offer, db } = this.#options
    const count = this.#count
    const ended = this.#ended.count
    const waitMs = this.#small && this.#due && this.#refusal === undefined ? offer() : 0
    await this.#ended.wait(waitMs, ended)
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
    const { wake } = this.#options
    this.#underway = true
    if (this.#seen !== wake.count) this.#emptyInRow = 0
    this.#seen = wake.count
    const end = (step: Step | undefined) => {
      this.#last = step
      this.#count++
      this.#underway = false
      this.#ended.wake()
      wake.stir()
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
    this.#dueAtMs = performance.now() + this.#waitMs(step)
    if (step === undefined) return
    const { numbered: count, head: position } = step
    notify(listener, 'step', { numbered: count, scheduled: 0, durationMs, position })
    if (step.newEpoch) this.#tellEpoch(step)
    if (count === 0) return
    // Codes of another epoch say nothing to those who know the old ones: then everybody looks.
    const news = step.newEpoch ? undefined : step.news
    numbered(news, by)
    this.#tellOthers(news)
  }

  /** How long after this step to look again. */
  #waitMs(step: Step | undefined): number {
    const { busyPollMs, pollMs } = this.#options
    if (step === undefined) return busyPollMs
    this.#learn(step.numbered)
    this.#emptyInRow = step.numbered > 0 ? 0 : this.#emptyInRow + 1
    if (step.numbered > 1 || (step.numbered > 0 && this.#gapMs < closeMs)) return 0
    const soonMs = Math.min(busyPollMs, Math.max(1, 2 * this.#gapMs))
    return Math.min(pollMs, soonMs * 1.5 ** Math.min(20, this.#emptyInRow))
  }

  #learn(numbered: number): void {
    const sinceMs = performance.now() - this.#tookAtMs
    this.#tookAtMs += sinceMs
    const gapMs = Math.min(gapMsMax, numbered > 0 ? sinceMs / numbered : this.#gapMs + sinceMs)
    this.#gapMs += (gapMs - this.#gapMs) / 4
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
    if (code === undefined || code !== this.#refusal) notify(listener, 'error', { during: 'step', error })
    this.#refusal = code
  }
}
