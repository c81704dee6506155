/**
 * One import: a line for each document, and one answer line for each of them. Starts small and grows
 * by measured time, because an import is synchronous and must end within the call.
 */
import { HttpError } from '../../http.ts'
import { delivered, type Outcome, retry } from '../../sink.ts'
import type { ApiCall, TypesenseApi } from './api.ts'
import { outcomeOfFailure, outcomeOfLine } from './outcomes.ts'

export interface Line {
  /** As it is in Typesense. */
  readonly id: string
  readonly line: string
}

const sizeMin = 50
const sizeFirst = 500
export const sizeMax = 5_000
const quickMs = 1_000
const slowMs = 4_000

/** How many documents the next import holds. */
export class ImportPace {
  #size = sizeFirst

  get size(): number {
    return this.#size
  }

  note(items: number, ms: number): void {
    if (ms > slowMs) this.#size = Math.max(sizeMin, Math.floor(this.#size / 2))
    else if (ms < quickMs && items >= this.#size) this.#size = Math.min(sizeMax, this.#size * 2)
  }
}

/** One outcome per line. What is refused as a whole is halved until the bad one stands alone. */
export async function importLines(
  api: TypesenseApi,
  collection: string,
  lines: readonly Line[],
  call: ApiCall,
): Promise<Outcome[]> {
  if (lines.length === 0) return []
  try {
    const body = lines.map(({ line }) => line).join('\n')
    return readLines(await api.importDocuments(collection, body, call), lines)
  } catch (error) {
    const outcome = outcomeOfFailure(error, lines.length)
    if (outcome.outcome === 'misconfigured' || outcome.outcome === 'unavailable') throw error
    if (outcome.outcome !== 'split') return lines.map(() => outcome)
    const middle = Math.ceil(lines.length / 2)
    const left = await importLines(api, collection, lines.slice(0, middle), call)
    return [...left, ...(await importLines(api, collection, lines.slice(middle), call))]
  }
}

/** Nothing counts as written that was not named; an answer that names nothing is none. */
function readLines(text: string, lines: readonly Line[]): Outcome[] {
  const answers = text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map(parse)
  if (answers[0] === undefined) {
    throw new HttpError('HTTP_ANSWER_FOREIGN', 'the answer is not that of an import', true)
  }
  return lines.map(({ id }, at) => {
    const answer = answers[at]
    if (answer === undefined) return lost('the answer ends before this document')
    if (answer.success !== true) return outcomeOfLine(answer)
    const other = answer.id !== undefined && answer.id !== id
    return other ? lost('the answer names another document') : delivered()
  })
}

const lost = (message: string) => retry({ code: 'TYPESENSE_ANSWER', message })

interface AnswerLine {
  readonly success?: unknown
  readonly id?: unknown
  readonly error?: unknown
  readonly code?: unknown
}

function parse(line: string): AnswerLine | undefined {
  try {
    return JSON.parse(line) ?? undefined
  } catch {
    return undefined
  }
}
