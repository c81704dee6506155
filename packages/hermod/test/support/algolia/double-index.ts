/**
 * The indices of the double of Algolia and its queue of tasks: a write is checked and accepted at
 * once, and takes effect when its task is published.
 */

import { type TaskTime, timeOf } from '../slow-tasks.ts'
import { type FilterParams, filterOf } from './double-filters.ts'
import type { AlgoliaRecord, Settings } from './double-search.ts'

export class DoubleIndex {
  records = new Map<string, AlgoliaRecord>()
  settings: Settings = {}
  readonly createdAt = new Date().toISOString()
}

export interface BatchRequest {
  readonly action: string
  readonly body: { readonly objectID?: string; readonly [attribute: string]: unknown }
}

interface Task {
  readonly id: number
  readonly index: string
  readonly apply: () => void
}

/** Everything one application owns. */
export class DoubleApplication {
  readonly indices = new Map<string, DoubleIndex>()
  /** A task is published this long after it was accepted. */
  taskMs: TaskTime = 0
  /** Tasks of one index are published newest first: their order is nowhere promised. */
  disorder = false
  #waiting: Task[] = []
  #held = false
  #lastTask = 0
  #due = false

  get pendingTasks(): number {
    return this.#waiting.length
  }

  get recordCount(): number {
    return [...this.indices.values()].reduce((sum, { records }) => sum + records.size, 0)
  }

  /** From now on tasks wait until `release`. */
  hold(): void {
    this.#held = true
  }

  release(): void {
    this.#held = false
    this.#publish()
  }

  submit(index: string, apply: () => void): number {
    const id = ++this.#lastTask
    this.#waiting.push({ id, index, apply })
    if (!this.#held && !this.#due) {
      this.#due = true
      if (this.taskMs === 0) setImmediate(() => this.#publish())
      else setTimeout(() => this.#publish(), timeOf(this.taskMs)).unref()
    }
    return id
  }

  isPublished(id: number): boolean {
    return id <= this.#lastTask && this.#waiting.every((task) => task.id !== id)
  }

  #publish(): void {
    this.#due = false
    if (this.#held) return
    const tasks = this.#waiting
    this.#waiting = []
    for (const { apply } of this.disorder ? tasks.toReversed() : tasks) apply()
  }

  /** Made when it is first written to. */
  index(name: string): DoubleIndex {
    const index = this.indices.get(name) ?? new DoubleIndex()
    this.indices.set(name, index)
    return index
  }

  batch(name: string, requests: readonly BatchRequest[]): number {
    return this.submit(name, () => {
      const { records } = this.index(name)
      for (const request of requests) applyRequest(records, request)
    })
  }

  deleteBy(name: string, params: FilterParams): number {
    return this.submit(name, () => {
      const { records, settings } = this.index(name)
      const matches = filterOf(params, settings.attributesForFaceting ?? [])
      for (const [id, record] of records) if (matches(record)) records.delete(id)
    })
  }

  setSettings(name: string, settings: Settings): number {
    return this.submit(name, () => {
      const index = this.index(name)
      index.settings = { ...index.settings, ...settings }
    })
  }

  deleteIndex(name: string): number {
    return this.submit(name, () => this.indices.delete(name))
  }

  /** A source that is not there: `move` does nothing, `copy` makes an empty index. */
  operation(from: string, operation: string, to: string, scope?: readonly string[]): number {
    return this.submit(from, () => {
      const source = this.indices.get(from)
      if (operation === 'move') {
        if (source === undefined) return
        this.indices.set(to, source)
        this.indices.delete(from)
        return
      }
      const target = scope === undefined ? new DoubleIndex() : this.index(to)
      if (scope === undefined) target.records = new Map(source?.records)
      if (scope === undefined || scope.includes('settings')) {
        target.settings = structuredClone(source?.settings ?? {})
      }
      this.indices.set(to, target)
    })
  }
}

function applyRequest(records: Map<string, AlgoliaRecord>, { action, body }: BatchRequest): void {
  const objectID = body.objectID as string
  switch (action) {
    case 'addObject':
    case 'updateObject':
      records.set(objectID, { ...body, objectID })
      return
    case 'partialUpdateObject':
    case 'partialUpdateObjectNoCreate': {
      const current = records.get(objectID)
      if (current === undefined && action === 'partialUpdateObjectNoCreate') return
      const next = partially(current, { ...body, objectID })
      if (next !== undefined) records.set(objectID, next)
      return
    }
    case 'deleteObject':
      records.delete(objectID)
      return
    case 'clear':
      records.clear()
  }
}

/** Undefined: a guard (`IncrementSet`, `IncrementFrom`) did not hold, the whole update is ignored. */
function partially(current: AlgoliaRecord | undefined, changes: AlgoliaRecord): AlgoliaRecord | undefined {
  const next: Record<string, unknown> = { ...current }
  for (const [name, change] of Object.entries(changes)) {
    const { _operation: operation, value } = (change ?? {}) as Record<string, unknown>
    if (operation === undefined) {
      next[name] = change
      continue
    }
    const before = (current?.[name] ?? 0) as number
    if (operation === 'IncrementSet') {
      if (!((value as number) > before)) return undefined
      next[name] = value
    } else if (operation === 'IncrementFrom') {
      if (value !== before) return undefined
      next[name] = before + 1
    } else if (operation === 'Increment' || operation === 'Decrement') {
      next[name] = before + (operation === 'Increment' ? 1 : -1) * (value as number)
    } else {
      next[name] = listOperation(operation as string, (current?.[name] ?? []) as unknown[], value)
    }
  }
  return next as AlgoliaRecord
}

function listOperation(operation: string, list: readonly unknown[], value: unknown): unknown[] {
  if (operation === 'Remove') return list.filter((one) => one !== value)
  return operation === 'AddUnique' && list.includes(value) ? [...list] : [...list, value]
}
