/**
 * Algolia's tasks: a write is accepted at once and seen when its task is published. A parked write
 * is a handle with its tasks; one poll asks for a bounded number of them, the oldest first.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { delivered, type Outcome } from '../sink.ts'
import type { AlgoliaApi } from './algolia-api.ts'
import { AlgoliaFailure } from './algolia-api.ts'
import { outcomeOfAlgoliaError } from './algolia-outcomes.ts'
import type { Call } from './engine.ts'

/** The name of an index in Algolia, and a task of it. */
export type TaskRef = readonly [indexName: string, taskID: number]

const handleCharsMax = 2_000
const firstWaitMs = 20
const waitMaxMs = 1_000
/** Algolia answers one task a request: more than this would make a poll a burden. */
export const tasksPerPoll = 24
const atOnce = 6

export async function waitForTasks(
  api: AlgoliaApi,
  tasks: readonly TaskRef[],
  { signal }: Call,
): Promise<void> {
  for (const [index, taskID] of tasks) {
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMaxMs, waitMs * 1.5)) {
      if ((await api.taskStatus(index, taskID, { signal: signal as AbortSignal })) === 'published')
        break
      await sleep(waitMs, undefined, { signal: signal as AbortSignal })
    }
  }
}

/** Undefined: too many tasks for one handle. */
export function handleOf(tasks: readonly TaskRef[]): string | undefined {
  const handle = JSON.stringify(tasks)
  return handle.length > handleCharsMax ? undefined : handle
}

export function tasksOf(handle: string): readonly TaskRef[] {
  try {
    const tasks: unknown = JSON.parse(handle)
    return Array.isArray(tasks) ? tasks : []
  } catch {
    return []
  }
}

/** Remembers what it saw published, so that no task is asked about twice. */
export class TaskPoll {
  readonly #api: AlgoliaApi
  readonly #published = new Set<string>()
  #turn = 0

  constructor(api: AlgoliaApi) {
    this.#api = api
  }

  async poll(handles: readonly string[], call: Call): Promise<(Outcome | undefined)[]> {
    const open = this.#open(handles)
    const failed = new Map<string, Outcome>()
    let error: unknown
    let answered = 0
    for (let at = 0; at < open.length; at += atOnce) {
      await Promise.all(
        open.slice(at, at + atOnce).map(async ([index, taskID]) => {
          try {
            const status = await this.#api.taskStatus(index, taskID, call)
            answered++
            if (status === 'published') this.#published.add(keyOf([index, taskID]))
          } catch (thrown) {
            error = thrown
            const outcome = outcomeOfPoll(thrown)
            if (outcome !== undefined) failed.set(keyOf([index, taskID]), outcome)
          }
        }),
      )
    }
    if (error !== undefined && answered === 0 && failed.size === 0) throw error
    return handles.map((handle) => this.#outcomeOf(handle, failed))
  }

  /** Each task once; when there are too many, every poll begins behind where the last one ended. */
  #open(handles: readonly string[]): TaskRef[] {
    const byKey = new Map(handles.flatMap(tasksOf).map((task) => [keyOf(task), task]))
    const open = [...byKey]
      .filter(([key]) => !this.#published.has(key))
      .map(([, task]) => task)
      .sort((a, b) => a[1] - b[1])
    if (open.length <= tasksPerPoll) return open
    const from = this.#turn % open.length
    this.#turn += tasksPerPoll
    return [...open, ...open].slice(from, from + tasksPerPoll)
  }

  #outcomeOf(handle: string, failed: ReadonlyMap<string, Outcome>): Outcome | undefined {
    const keys = tasksOf(handle).map(keyOf)
    const problem = keys.map((key) => failed.get(key)).find((one) => one !== undefined)
    if (problem !== undefined) return problem
    if (!keys.every((key) => this.#published.has(key))) return undefined
    for (const key of keys) this.#published.delete(key)
    return delivered()
  }
}

const keyOf = ([index, taskID]: TaskRef) => `${index} ${taskID}`

/**
 * A poll that fails for a passing reason says nothing about the write: it is asked again. An index
 * that is gone was dropped, and with it the need to write to it.
 */
function outcomeOfPoll(error: unknown): Outcome | undefined {
  if (!(error instanceof AlgoliaFailure)) return undefined
  if (error.status === 404) return delivered()
  return error.status === 429 || error.status >= 500 ? undefined : outcomeOfAlgoliaError(error, 1)
}
