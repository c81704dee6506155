/**
 * The task queue of the double of Meilisearch: numbered, run in order, neighbours of one index and
 * kind in one batch, each task all or nothing. It can be held, slowed down, and survives a restart.
 */
import { type TaskTime, timeOf } from '../slow-tasks.ts'
import { type ErrorBody, Refusal, type Store, type Work } from './double-store.ts'

export type Status = 'enqueued' | 'processing' | 'succeeded' | 'failed' | 'canceled'

export interface Task {
  readonly uid: number
  batchUid: number | null
  readonly indexUid: string | null
  status: Status
  readonly type: string
  canceledBy: number | null
  details: Record<string, unknown> | null
  error: ErrorBody | null
  duration: string | null
  readonly enqueuedAt: string
  startedAt: string | null
  finishedAt: string | null
  readonly customMetadata?: string
}

/** What a test lets a task fail with. */
export type TaskFault = (task: Task, work: Work | undefined) => Refusal | undefined

const MERGED = new Set(['documentAdditionOrUpdate', 'documentDeletion'])

export class Queue {
  readonly tasks: Task[] = []
  readonly #work = new Map<number, Work>()
  readonly #store: Store
  /** Servers from 1.12 on merge additions and deletions by id; deletions by filter stay alone. */
  readonly #mixes: boolean
  /** Between starting a batch and ending it; two numbers: anything in between. */
  delayMs: TaskTime = 0
  fault: TaskFault | undefined
  #held = false
  #running = false
  #batches = 0
  #life = 0

  constructor(store: Store, mixes = true) {
    this.#store = store
    this.#mixes = mixes
  }

  add(indexUid: string | null, work: Work, customMetadata?: string): Task {
    const task: Task = {
      uid: this.tasks.length,
      batchUid: null,
      indexUid,
      status: 'enqueued',
      type: work.type,
      canceledBy: null,
      details: null,
      error: null,
      duration: null,
      enqueuedAt: new Date().toISOString(),
      startedAt: null,
      finishedAt: null,
      ...(customMetadata !== undefined && { customMetadata }),
    }
    this.tasks.push(task)
    this.#work.set(task.uid, work)
    this.#pump()
    return task
  }

  hold(): void {
    this.#held = true
  }

  release(): void {
    this.#held = false
    this.#pump()
  }

  /** As after a crash: what was being done is done again from the start. */
  restart(): void {
    this.#life++
    this.#running = false
    for (const task of this.tasks) {
      if (task.status !== 'processing') continue
      Object.assign(task, { status: 'enqueued', startedAt: null, batchUid: null })
    }
    this.#pump()
  }

  cancel(uids: readonly number[]): void {
    const by = this.tasks.length
    for (const task of this.tasks) {
      if (!uids.includes(task.uid) || task.status !== 'enqueued') continue
      Object.assign(task, {
        status: 'canceled',
        canceledBy: by,
        finishedAt: new Date().toISOString(),
      })
    }
    this.tasks.push({
      uid: by,
      batchUid: null,
      indexUid: null,
      status: 'succeeded',
      type: 'taskCancelation',
      canceledBy: null,
      details: {},
      error: null,
      duration: 'PT0.001S',
      enqueuedAt: new Date().toISOString(),
      startedAt: new Date().toISOString(),
      finishedAt: new Date().toISOString(),
    })
  }

  #pump(): void {
    if (this.#running || this.#held) return
    this.#running = true
    const life = this.#life
    setImmediate(() => this.#turn(life))
  }

  #turn(life: number): void {
    if (life !== this.#life) return
    const batch = this.#held ? [] : this.#nextBatch()
    if (batch.length === 0) {
      this.#running = false
      return
    }
    const batchUid = this.#batches++
    const startedAt = new Date().toISOString()
    for (const task of batch) Object.assign(task, { status: 'processing', batchUid, startedAt })
    const end = () => {
      if (life !== this.#life) return
      const spoilt = batch.map((task) => this.#spoilt(task)).find((one) => one !== undefined)
      for (const task of batch) this.#run(task, spoilt)
      this.#turn(life)
    }
    const delayMs = timeOf(this.delayMs)
    if (delayMs > 0) setTimeout(end, delayMs)
    else end()
  }

  #nextBatch(): Task[] {
    const waiting = this.tasks.filter(({ status }) => status === 'enqueued')
    const [first] = waiting
    if (first === undefined) return []
    const kind = this.#kind(first)
    if (kind === undefined) return [first]
    const others = waiting.filter((task) => touches(task, this.#work.get(task.uid), first.indexUid))
    const end = others.findIndex((task) => this.#kind(task) !== kind)
    return end === -1 ? others : others.slice(0, end)
  }

  /** What it can be merged with; undefined: with nothing. */
  #kind({ uid, type }: Task): string | undefined {
    const work = this.#work.get(uid)
    if (!MERGED.has(type) || (work?.type === 'documentDeletion' && work.filter !== undefined)) return undefined
    return this.#mixes ? 'documents' : type
  }

  #spoilt({ uid, indexUid }: Task): Refusal | undefined {
    const work = this.#work.get(uid)
    if (work?.type !== 'documentAdditionOrUpdate') return undefined
    return this.#store.problemIn(indexUid as string, work.documents)
  }

  #run(task: Task, spoilt: Refusal | undefined): void {
    const work = this.#work.get(task.uid)
    const startedMs = Date.parse(task.startedAt as string)
    try {
      const fault = this.fault?.(task, work) ?? spoilt
      if (fault !== undefined) throw fault
      task.details = this.#store.run(task.indexUid, work as Work)
      task.status = 'succeeded'
    } catch (error) {
      task.status = 'failed'
      task.error = error instanceof Refusal ? error.body : internal(error)
      if (work?.type === 'documentAdditionOrUpdate') {
        task.details = { receivedDocuments: work.documents.length, indexedDocuments: 0 }
      }
    }
    this.#work.delete(task.uid)
    task.finishedAt = new Date().toISOString()
    task.duration = `PT${((Date.now() - startedMs) / 1_000).toFixed(6)}S`
  }
}

function touches(task: Task, work: Work | undefined, uid: string | null): boolean {
  if (work?.type === 'indexSwap') return work.swaps.flat().includes(uid as string)
  return task.indexUid === uid
}

const internal = (error: unknown) => new Refusal(500, 'internal', String(error), 'internal').body
