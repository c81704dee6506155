/**
 * Numbers what commits: step after step while there is something to number, and polls ever more slowly while
 * there is not. Every worker runs one; the worker that gets the lock makes the step, the others return at once.
 */
import { type Database, isConnectionError } from '../database.ts'
import { HermodError } from '../errors.ts'
import { firstPieceRows, type News, pieceRows, type Step, sequence } from '../flow/sequence.ts'
import { type Listener, notify } from '../telemetry.ts'
import { tell } from './news.ts'
import { Wake } from './wake.ts'

export interface NumberingOptions {
  readonly db: Database
  readonly listener: Listener
  /** Woken when something may have committed. */
  readonly wake: Wake
  readonly busyPollMs: number
  readonly pollMs: number
  /** Called when the head has moved. Undefined news: any lane may have something. */
  numbered(news: News | undefined): void
  /** Are there other workers to tell? */
  others(): boolean
}

/** Claim loops wait at most this long for the first step: usually there is nothing to claim before it. */
const beginMs = 100
/** Pause after the first empty step; it doubles after each further one. */
const emptyMs = 1
const errorMs = 1_000
const brokenConnectionMs = 200

export class Numbering {
  readonly #options: NumberingOptions
  readonly #first = new Wake()
  readonly #ending = new Wake()
  #stopped = false
  #rows = firstPieceRows
  #head = -1n
  #emptyInRow = 0
  #refusal: string | undefined
  #telling: 'nothing' | 'now' | 'again' = 'nothing'

  constructor(options: NumberingOptions) {
    this.#options = options
  }

  stop(): void {
    this.#stopped = true
    this.#ending.wake()
    this.#options.wake.wake()
  }

  async run(): Promise<void> {
    const { wake } = this.#options
    while (!this.#stopped) {
      const seen = wake.count
      const startedMs = performance.now()
      const step = await this.#step()
      this.#first.wake()
      if (step?.more) continue
      if (step !== undefined && step.numbered > 0) await this.#gather(performance.now() - startedMs)
      else await wake.wait(this.#waitMs(step), seen)
      if (wake.count !== seen) this.#emptyInRow = 0
    }
  }

  /** As long as the step took: half of the time at most is spent on steps. Only a stop ends it, or each commit would cause one. */
  async #gather(stepMs: number): Promise<void> {
    await this.#ending.wait(Math.min(this.#options.busyPollMs, stepMs), 0)
  }

  /** Resolves when the first step has ended, or takes long. */
  begun(): Promise<void> {
    return this.#first.wait(beginMs, 0)
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
    const { db, wake } = this.#options
    const startedMs = performance.now()
    try {
      const step = await sequence(db, this.#rows)
      this.#refusal = undefined
      this.#take(step, performance.now() - startedMs)
      return step
    } catch (error) {
      this.#failed(error)
      await wake.wait(isConnectionError(error) ? brokenConnectionMs : errorMs)
      return undefined
    }
  }

  #take(step: Step | undefined, durationMs: number): void {
    this.#rows = step?.more ? Math.min(pieceRows, this.#rows * 2) : firstPieceRows
    if (step === undefined) return
    const { numbered: count, head, newEpoch } = step
    // Codes of kinds may differ in another epoch: then all loops look.
    const news = newEpoch ? undefined : step.news
    const { listener, numbered } = this.#options
    notify(listener, 'step', { numbered: count, durationMs, position: head })
    if (newEpoch) this.#tellEpoch(step)
    // Another worker numbered something in between, and its lanes are not known here.
    const others = head > this.#head + BigInt(count)
    if (head > this.#head) numbered(others ? undefined : news)
    this.#head = head
    if (count === 0) return
    this.#emptyInRow = 0
    this.#tellOthers(news)
  }

  /** After a step that found nothing. Undefined: another session is making one. */
  #waitMs(step: Step | undefined): number {
    const { busyPollMs, pollMs } = this.#options
    if (step === undefined) return busyPollMs
    const dueMs = step.dueMs ?? Number.POSITIVE_INFINITY
    return Math.max(emptyMs, Math.min(pollMs, dueMs, emptyMs * 2 ** Math.min(20, this.#emptyInRow++)))
  }

  #tellEpoch(step: Step): void {
    notify(this.#options.listener, 'warning', {
      code: 'HMD_RESTORED',
      message: `a new timeline: positions continue above ${step.head}; a tail that was delivered may be lost here`,
    })
  }

  /** One message at a time; news that comes meanwhile is sent in one message afterwards. */
  #tellOthers(news: News | undefined): void {
    const { db, others } = this.#options
    if (!others()) return
    if (this.#telling !== 'nothing') {
      this.#telling = 'again'
      return
    }
    this.#telling = 'now'
    tell(db, { what: 'numbered', news }).finally(() => {
      const again = this.#telling === 'again'
      this.#telling = 'nothing'
      if (again) this.#tellOthers(undefined)
    })
  }

  /** A refusal is reported once, not at every poll. */
  #failed(error: unknown): void {
    const code = error instanceof HermodError ? error.code : undefined
    if (code === undefined || code !== this.#refusal) notify(this.#options.listener, 'error', { during: 'step', error })
    this.#refusal = code
  }
}
