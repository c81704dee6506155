/**
 * Loads a source into an index, page by page: pages sized by bytes, a few of them in flight. A bad
 * row is listed and skipped; an engine in trouble is waited for. Progress only covers pages that were written.
 */
import type { Upsert } from '../sinks/search/engine.ts'
import { type Outcome, outcomeOfError } from '../sinks/sink.ts'
import type { DeclaredIndex } from './declared-index.ts'
import type { Run } from './runner.ts'
import type { SourceDocument, SourcePage } from './source.ts'

export interface LoadTuning {
  /** Target size of a page, in bytes of JSON. */
  readonly pageBytes: number
  readonly pagesInFlight: number
}

export const loadTuning: LoadTuning = { pageBytes: 1024 * 1024, pagesInFlight: 2 }

const firstRows = 200
const rowsMax = 5_000
const attemptsMax = 5
const waitMsMax = 15_000
export const rejectionsKept = 50

export interface Rejection {
  readonly id: string
  readonly code: string
  readonly message: string
}

/** A page on its way: noted when it and all before it are written. */
interface Flight {
  readonly page: SourcePage
  readonly written: Promise<void>
}

export class LoadRows {
  readonly #run: Run
  readonly #index: DeclaredIndex
  readonly #generation: string | undefined
  readonly #tuning: LoadTuning
  #rows = firstRows
  #done: number
  #rejected: number
  #rejections: Rejection[]

  constructor(run: Run, index: DeclaredIndex, generation: string | undefined, tuning: LoadTuning = loadTuning) {
    this.#run = run
    this.#index = index
    this.#generation = generation
    this.#tuning = tuning
    this.#done = run.progress.done ?? 0
    this.#rejected = Number(run.progress.rejected ?? 0)
    this.#rejections = (run.progress.rejections as Rejection[] | undefined) ?? []
  }

  /** Loads from the noted progress to the end of the source. */
  async run(): Promise<void> {
    if (this.#run.progress.loaded === true) return
    const after = (this.#run.progress.after as string | null | undefined) ?? undefined
    const flights: Flight[] = []
    let reading: Promise<SourcePage> | undefined = this.#read(after)
    try {
      while (reading !== undefined || flights.length > 0) {
        if (reading !== undefined && flights.length < this.#tuning.pagesInFlight) {
          const page: SourcePage = await reading
          reading = page.next === undefined ? undefined : this.#read(page.next)
          const written = this.#page(page)
          written.catch(() => {})
          flights.push({ page, written })
          continue
        }
        await this.#land(flights.shift() as Flight)
      }
    } finally {
      reading?.catch(() => {})
      await Promise.allSettled(flights.map(({ written }) => written))
    }
    await this.#run.note({ loaded: true, done: this.#done, total: this.#done })
  }

  async #land({ page, written }: Flight): Promise<void> {
    await written
    this.#done += page.rows
    await this.#run.note({
      done: this.#done,
      rejected: this.#rejected,
      rejections: this.#rejections,
      waiting: null,
      ...(page.next !== undefined && { after: page.next }),
    })
  }

  async #read(after: string | undefined): Promise<SourcePage> {
    this.#run.look()
    const page = await this.#index.source.page(this.#run.db, { after, limit: this.#rows })
    const bytes = page.documents.reduce((sum, { json }) => sum + json.length, 0)
    const average = Math.max(1, bytes / Math.max(1, page.rows))
    const fitting = Math.floor(this.#tuning.pageBytes / average)
    this.#rows = Math.max(10, Math.min(fitting, this.#rows * 2, rowsMax))
    return page
  }

  async #page({ documents, refused, position }: SourcePage): Promise<void> {
    for (const { id, why } of refused) this.#refuse({ id, code: 'MAPPING_FAILED', message: why })
    const { itemsMax = Number.MAX_SAFE_INTEGER } = this.#index.engine.capabilities
    for (let from = 0; from < documents.length; from += itemsMax) {
      await this.#write(documents.slice(from, from + itemsMax), position)
    }
  }

  /** Repeats until every document has a final outcome. */
  async #write(documents: readonly SourceDocument[], version: bigint): Promise<void> {
    let left = documents
    for (let attempt = 1; left.length > 0; attempt++) {
      const outcomes = await this.#call(left, version)
      const again: SourceDocument[] = []
      let wait: Outcome | undefined
      for (const [at, document] of left.entries()) {
        const outcome = outcomes[at] as Outcome
        if (outcome.outcome === 'split' && left.length > 1) {
          const half = Math.ceil(left.length / 2)
          await this.#write(left.slice(0, half), version)
          return this.#write(left.slice(half), version)
        }
        if (stays(outcome, attempt)) this.#settle(document, outcome)
        else {
          again.push(document)
          wait ??= outcome
        }
      }
      left = again
      if (wait !== undefined) await this.#wait(wait, attempt)
      if (wait !== undefined && isTrouble(wait)) attempt = Math.min(attempt, attemptsMax - 1)
    }
  }

  async #call(documents: readonly SourceDocument[], version: bigint): Promise<readonly Outcome[]> {
    this.#run.look()
    const upserts: Upsert[] = documents.map(({ id, json }) => ({ id, version, json }))
    const { signal } = this.#run
    const where = this.#generation === undefined ? { signal } : { signal, generation: this.#generation }
    try {
      return await this.#index.engine.upsert(this.#index.name, upserts, where)
    } catch (error) {
      this.#run.look()
      const outcome = outcomeOfError(error)
      return documents.map(() => outcome)
    }
  }

  #settle({ id }: SourceDocument, { outcome, code, message }: Outcome): void {
    if (outcome === 'delivered' || outcome === 'superseded') return
    this.#refuse({ id, code: code ?? outcome.toUpperCase(), message: message ?? outcome })
  }

  #refuse(rejection: Rejection): void {
    this.#rejected++
    if (this.#rejections.length < rejectionsKept) {
      this.#rejections = [...this.#rejections, rejection]
    }
  }

  /** While it waits, the progress says why. */
  async #wait(outcome: Outcome, attempt: number): Promise<void> {
    const usualMs = Math.min(waitMsMax, 500 * 2 ** Math.min(attempt, 6))
    if (isTrouble(outcome)) {
      const waiting = `${this.#index.engine.name} is ${outcome.outcome}: ${outcome.message ?? outcome.code ?? ''}`
      await this.#run.note({ waiting })
    }
    await this.#run.pause(Math.max(usualMs, outcome.afterMs ?? 0))
  }
}

function isTrouble({ outcome }: Outcome): boolean {
  return outcome === 'unavailable' || outcome === 'misconfigured'
}

function stays(outcome: Outcome, attempt: number): boolean {
  if (isTrouble(outcome)) return false
  return outcome.outcome !== 'retry' || attempt >= attemptsMax
}
