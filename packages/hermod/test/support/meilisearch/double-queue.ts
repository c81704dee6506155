/**
 * The task queue of the double of Meilisearch: numbered, run in order, neighbours of one index and
 * kind in one batch, each task all or nothing. It can be held, slowed down, and survives a restart.
 */
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
  /** Between starting a batch and ending it. */
  delayMs = 0
  fault: TaskFault | undefined
  #held = false
  #running = false
  #batches = 0
  #life = 0

  constructor(store: Store) {
    this.#store = store
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
    if (this.delayMs > 0) setTimeout(end, this.delayMs)
    else end()
  }

  #nextBatch(): Task[] {
    const waiting = this.tasks.filter(({ status }) => status === 'enqueued')
    const [first] = waiting
    if (first === undefined) return []
    if (!MERGED.has(first.type)) return [first]
    const others = waiting.filter((task) => touches(task, this.#work.get(task.uid), first.indexUid))
    const end = others.findIndex((task) => task.type !== first.type)
    return end === -1 ? others : others.slice(0, end)
  }

  /** What is only met while indexing fails everything that was merged into the batch. */
  #spoilt({ uid, indexUid }: Task): Refusal | undefined {
    const work = this.#work.get(uid)
    if (work?.type !== 'documentAdditionOrUpdate') return undefined
    return this.#store.geoProblem(indexUid as string, work.documents)
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
