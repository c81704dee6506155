/**
 * The conformance suite for search engines: one list of named cases, run by whatever `test(name, fn)`
 * you have. What an engine cannot do is left out with a sentence, never silently.
 */
import { HermodError } from '../errors.ts'
import type { SearchEngine } from '../sinks/search/index.ts'
import type { Exercise } from './exercise-sink.ts'
import type { SearchCase } from './search-documents.ts'
import { searchIndexCases } from './search-index-cases.ts'
import { searchQueryCases } from './search-query-cases.ts'
import { searchWriteCases } from './search-write-cases.ts'

export type { SearchCase } from './search-documents.ts'

export interface ExerciseSearchEngineOptions {
  /** `test` of Vitest, node:test or Jest. */
  test(name: string, run: () => Promise<void>): unknown
  /** Waits until written documents can be found; not needed for engines that answer only then. */
  readonly settle?: (engine: SearchEngine, index: string) => Promise<unknown>
  /** Cases that do not apply, by name, each with the sentence that says why. */
  readonly leaveOut?: Readonly<Record<string, string>>
  /** Indexes are named by this and a number; `exercise` when left out. */
  readonly indexPrefix?: string
}

export const searchCases: readonly SearchCase[] = [...searchWriteCases, ...searchQueryCases, ...searchIndexCases]

let indexes = 0

/** `makeEngine` gives an engine on a healthy destination; the suite closes it. */
export function exerciseSearchEngine(
  makeEngine: () => SearchEngine | Promise<SearchEngine>,
  options: ExerciseSearchEngineOptions,
): Exercise {
  const { leaveOut = {}, indexPrefix = 'exercise', settle } = options
  refuseUnknownCases(leaveOut)
  const cases: string[] = []
  const leftOut: { name: string; why: string }[] = []
  for (const { name, run } of searchCases) {
    const why = leaveOut[name]
    if (why !== undefined) {
      leftOut.push({ name, why })
      continue
    }
    cases.push(name)
    options.test(name, async () => {
      const engine = await makeEngine()
      const index = `${indexPrefix}_${++indexes}`
      try {
        await run({ engine, index, settle: async () => settle?.(engine, index) })
      } finally {
        await engine.close()
      }
    })
  }
  return { cases, leftOut }
}

/** Refuses names of cases that do not exist: a renamed case must not stay left out unnoticed. */
function refuseUnknownCases(leaveOut: Readonly<Record<string, string>>): void {
  const unknown = Object.keys(leaveOut).filter((name) => searchCases.every((one) => one.name !== name))
  if (unknown.length === 0) return
  const says = `exerciseSearchEngine: there is no case named ${unknown.join(', ')}`
  throw new HermodError('HMD_OPTION_INVALID', says, { field: 'leaveOut' })
}
