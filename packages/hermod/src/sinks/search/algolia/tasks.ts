/**
 * Algolia's tasks: a write is accepted at once and seen when its task is published. A parked write
 * is a handle with its tasks; one poll asks for a bounded number of them, the oldest first.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { delivered, type Outcome, split } from '../../sink.ts'
import type { Call } from '../engine.ts'
import { type AlgoliaApi, AlgoliaFailure } from './api.ts'
import { outcomeOfAlgoliaError } from './outcomes.ts'

/** The name of an index in Algolia, and a task of it. */
export type TaskRef = readonly [indexName: string, taskID: number]

const handleCharsMax = 2_000
const firstWaitMs = 20
const waitMaxMs = 1_000
/** Algolia answers for one task per request; this limits the cost of a poll. */
export const tasksPerPoll = 24
const atOnce = 6
/** Limits how many published tasks are remembered. */
const rememberedMax = 10_000

export async function waitForTasks(api: AlgoliaApi, tasks: readonly TaskRef[], call: Call): Promise<void> {
  for (const [index, taskID] of tasks) {
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMaxMs, waitMs * 1.5)) {
      if ((await api.taskStatus(index, taskID, call)) === 'published') break
      await sleep(waitMs, undefined, call)
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
    return Array.isArray(tasks) && tasks.every(isTask) ? tasks : []
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
    const errors: unknown[] = []
    for (let at = 0; at < open.length; at += atOnce) {
      const asked = open.slice(at, at + atOnce)
      await Promise.all(asked.map((task) => this.#ask(task, call, failed).catch((error) => errors.push(error))))
    }
    // Every request failed: the caller should see why.
    if (errors.length > 0 && errors.length === open.length) throw errors[0]
    return handles.map((handle) => this.#outcomeOf(handle, failed))
  }

  /**
   * Throws for a passing reason, which says nothing about the write. An index that is gone was
   * dropped, and with it the need to write to it.
   */
  async #ask(task: TaskRef, call: Call, failed: Map<string, Outcome>): Promise<void> {
    try {
      const status = await this.#api.taskStatus(...task, call)
      if (status === 'published') this.#published.add(keyOf(task))
    } catch (error) {
      if (!(error instanceof AlgoliaFailure) || error.status === 429 || error.status >= 500) {
        throw error
      }
      if (error.status === 404) this.#published.add(keyOf(task))
      else failed.set(keyOf(task), outcomeOfAlgoliaError(error, 1))
    }
  }

  /** Each task once. If there are too many, every poll starts after the last one polled. */
  #open(handles: readonly string[]): TaskRef[] {
    if (this.#published.size > rememberedMax) this.#published.clear()
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
    // Unknown handles are sent again: that is harmless.
    if (keys.length === 0) return split({ code: 'HANDLE_FOREIGN', message: 'not our handle' })
    const problem = keys.map((key) => failed.get(key)).find((one) => one !== undefined)
    if (problem !== undefined) return problem
    return keys.every((key) => this.#published.has(key)) ? delivered() : undefined
  }
}

function isTask(value: unknown): value is TaskRef {
  if (!Array.isArray(value)) return false
  return typeof value[0] === 'string' && Number.isSafeInteger(value[1])
}

const keyOf = ([index, taskID]: TaskRef) => `${index} ${taskID}`
