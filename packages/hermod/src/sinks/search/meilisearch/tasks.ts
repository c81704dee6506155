/**
 * Waiting for tasks, and asking about many of them at once. A task that is still at work is never a
 * failure; a handle names the tasks of one parked call and survives any restart.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { delivered, type Outcome, type Parked, retry } from '../../sink.ts'
import type { Call } from '../engine.ts'
import type { MeilisearchApi, MeilisearchError, MeilisearchTask } from './api.ts'
import { errorOfTask, isBlind, outcomeOfMeilisearch, unknownTask } from './outcomes.ts'
import type { Suspects } from './suspects.ts'

const firstPauseMs = 20
const pauseMsMax = 500

export interface TasksOptions {
  /** For tasks that are waited for. */
  readonly waitMs: number
  readonly suspects: Suspects
  readonly ended?: (uid: number) => void
}

export class Tasks {
  readonly #api: MeilisearchApi
  readonly #waitMs: number
  readonly #suspects: Suspects
  readonly #ended: (uid: number) => void

  constructor(api: MeilisearchApi, { waitMs, suspects, ended = () => {} }: TasksOptions) {
    this.#api = api
    this.#waitMs = waitMs
    this.#suspects = suspects
    this.#ended = ended
  }

  /** The error of each, or nothing when it succeeded. */
  async results(uids: readonly number[], call: Call = {}): Promise<readonly (MeilisearchError | undefined)[]> {
    const untilMs = performance.now() + this.#waitMs
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.6, pauseMsMax)) {
      const tasks = await this.#ask(uids, call)
      if (uids.every((uid) => isOver(tasks.get(uid)))) {
        const alone = await this.#alone(tasks, call)
        return uids.map((uid) => errorIn(tasks, uid, alone))
      }
      if (performance.now() > untilMs) throw new StillWorking(uids, this.#waitMs)
      await pause(pauseMs, undefined, call)
    }
  }

  /** Throws the error of the first that did not succeed. */
  async done(uid: number, call?: Call): Promise<void> {
    const [error] = await this.results([uid], call)
    if (error !== undefined) throw error
  }

  /** One question for all handles. */
  async poll(handles: readonly string[], call?: Call): Promise<readonly (Outcome | undefined)[]> {
    const read = handles.map(readHandle)
    const uids = new Set(read.flatMap((handle) => handle?.tasks ?? []))
    if (uids.size === 0) return read.map(() => foreignHandle())
    const tasks = await this.#ask([...uids], call)
    const alone = await this.#alone(tasks, call)
    return read.map((handle) => (handle === undefined ? foreignHandle() : judge(handle, tasks, alone)))
  }

  async #ask(uids: readonly number[], call?: Call): Promise<ReadonlyMap<number, MeilisearchTask>> {
    const tasks = new Map((await this.#api.tasks(uids, call)).map((task) => [task.uid, task]))
    for (const uid of uids) if (isOver(tasks.get(uid))) this.#ended(uid)
    for (const task of tasks.values()) this.#note(task)
    return tasks
  }

  #note(task: MeilisearchTask): void {
    const { uid, indexUid, status } = task
    if (indexUid == null) return
    if (isBlind(task)) this.#suspects.failed(indexUid, uid)
    else if (status === 'succeeded') this.#suspects.passed(indexUid, uid)
  }

  /** Tasks that failed by themselves: nothing was merged with them, and others of the index pass. */
  async #alone(tasks: ReadonlyMap<number, MeilisearchTask>, call?: Call): Promise<ReadonlySet<number>> {
    const blind = [...tasks.values()].filter((task) => isBlind(task) && this.#suspects.othersPass(task.indexUid ?? ''))
    const batches = blind.flatMap(({ batchUid }) => batchUid ?? [])
    if (batches.length === 0) return new Set()
    const sizes = await this.#api.batchSizes(batches, call)
    return new Set(blind.filter(({ batchUid }) => sizes.get(batchUid ?? -1) === 1).map(({ uid }) => uid))
  }
}

/** The queue is long. The name says to the outbox that nothing is certain yet. */
class StillWorking extends Error {
  override readonly name = 'TimeoutError'

  constructor(uids: readonly number[], waitMs: number) {
    super(`task ${uids.join(', ')} had not ended after ${waitMs} ms`)
  }
}

interface Handle {
  readonly tasks: readonly number[]
  /** Documents in the call. */
  readonly items: number
  /** The primary key, of a single one. */
  readonly only?: string | undefined
}

export function parkedCall({ tasks, items, only }: Handle): Parked {
  return { parked: JSON.stringify({ items, tasks, only }) }
}

function readHandle(text: string): Handle | undefined {
  try {
    const { tasks, items, only } = JSON.parse(text) as Partial<Handle>
    const fits = Array.isArray(tasks) && tasks.length > 0 && tasks.every(Number.isSafeInteger)
    return fits && Number.isSafeInteger(items) ? { tasks, items: items as number, only } : undefined
  } catch {
    return undefined
  }
}

const foreignHandle = () =>
  retry({ code: 'HANDLE_FOREIGN', message: 'the handle is not one of Meilisearch: sent again' })

function judge(
  { tasks: uids, items, only }: Handle,
  tasks: ReadonlyMap<number, MeilisearchTask>,
  alone: ReadonlySet<number>,
) {
  if (!uids.every((uid) => isOver(tasks.get(uid)))) return undefined
  const error = uids.map((uid) => errorIn(tasks, uid, alone)).find((one) => one !== undefined)
  return error === undefined ? delivered() : outcomeOfMeilisearch(error, items, only)
}

function errorIn(tasks: ReadonlyMap<number, MeilisearchTask>, uid: number, alone: ReadonlySet<number>) {
  const task = tasks.get(uid)
  const error = task === undefined ? unknownTask(uid) : errorOfTask(task)
  if (error !== undefined) error.byItself = alone.has(uid)
  return error
}

/** A task the server has forgotten will not end either. */
function isOver(task: MeilisearchTask | undefined): boolean {
  return task === undefined || !['enqueued', 'processing'].includes(task.status)
}
