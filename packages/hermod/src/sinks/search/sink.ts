/**
 * A search index as a destination: events become the final states of documents, one list of upserts
 * and one of deletions. The version of a document is the event's position.
 */
import { callable, checkOptions, optional, text } from '../../check-options.ts'
import type { OutboxEvent } from '../../event.ts'
import { delivered, isParked, type Outcome, type Parked, rejected, retry, type Sink, superseded } from '../sink.ts'
import { checkIndexName } from './check-definition.ts'
import type { Deletion, ParkingWrite, SearchEngine, Upsert } from './engine.ts'
import { joinHandles, pollHandles, waitFor } from './parked-writes.ts'
import { isGood } from './worst-outcome.ts'

export type Operation = 'upsert' | 'delete' | 'skip'

export interface SearchSinkOptions {
  readonly index: string
  /** The document of an event; its payload, as it is and never parsed, when left out. */
  readonly map?: (event: OutboxEvent) => object
  /** The aggregate's id when left out. */
  readonly id?: (event: OutboxEvent) => string
  /** Left out: events named `….deleted` delete, all others upsert. What load() did not find is deleted. */
  readonly operation?: (event: OutboxEvent) => Operation
  /** `search:documents` when left out. */
  readonly name?: string
}

const optionSpec = {
  index: text((value) => (value === '' ? 'must not be empty' : undefined)),
  map: optional(callable<NonNullable<SearchSinkOptions['map']>>()),
  id: optional(callable<NonNullable<SearchSinkOptions['id']>>()),
  operation: optional(callable<NonNullable<SearchSinkOptions['operation']>>()),
  name: optional(text((value) => (value === '' ? 'must not be empty' : undefined))),
}

export interface SearchSink extends Sink {
  readonly tables: readonly string[]
}

export function searchSink(engine: SearchEngine, given: SearchSinkOptions): SearchSink {
  const options = checkOptions('searchSink', given, optionSpec)
  checkIndexName(options.index)
  return {
    name: options.name ?? `search:${options.index}`,
    // Of several events of a document, only the last valid one is applied, so order is kept.
    capabilities: { ...engine.capabilities, keepsOrder: true },
    get tables() {
      return engine.tables ?? []
    },
    deliver: (events, { signal }) => promptly(new Delivery(engine, options, signal).run(events), signal),
    ...(engine.poll !== undefined && {
      poll: (handles: readonly string[], { signal }: { readonly signal: AbortSignal }) =>
        pollHandles(engine, handles, { signal }),
    }),
    probe: async ({ signal }) => {
      await engine.probe({ signal })
      await engine.get(options.index, '-', { signal })
    },
    close: () => engine.close(),
  }
}

/** An engine may share one request among callers, so aborting one caller does not end it. */
async function promptly<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = () => {}
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason)
  })
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Events of one document, newest last; settled from the end. */
type Group = { readonly id: string; readonly entries: Entry[] }
type Entry = { readonly event: OutboxEvent; readonly at: number }

class Delivery {
  readonly #engine: SearchEngine
  readonly #options: SearchSinkOptions
  readonly #signal: AbortSignal
  readonly #outcomes: Outcome[] = []

  constructor(engine: SearchEngine, options: object, signal: AbortSignal) {
    this.#engine = engine
    this.#options = options as SearchSinkOptions
    this.#signal = signal
  }

  /** If the newest state is rejected, the one before it is applied. */
  async run(events: readonly OutboxEvent[]): Promise<readonly Outcome[] | Parked> {
    let groups = this.#groups(events)
    while (groups.length > 0) {
      const parked = await this.#send(groups)
      if (parked !== undefined) return parked
      for (const group of groups) this.#settle(group)
      groups = groups.filter(({ entries }) => entries.length > 0)
    }
    return this.#outcomes
  }

  #groups(events: readonly OutboxEvent[]): Group[] {
    const groups = new Map<string, Group>()
    const failed = new Set<string>()
    events.forEach((event, at) => {
      const aggregate = `${event.aggregateType} ${event.aggregateId}`
      if (failed.has(aggregate)) {
        this.#outcomes[at] = retry({ code: 'BEHIND', message: 'an earlier event of it failed' })
        return
      }
      const id = this.#try(at, () => this.#options.id?.(event) ?? event.aggregateId)
      const operation = this.#try(at, () => this.#operation(event))
      if (id === undefined || operation === undefined) {
        failed.add(aggregate)
        return
      }
      if (operation === 'skip') {
        this.#outcomes[at] = delivered()
        return
      }
      const group = groups.get(id) ?? { id, entries: [] }
      group.entries.push({ event, at })
      groups.set(id, group)
    })
    return [...groups.values()]
  }

  #operation(event: OutboxEvent): Operation {
    if (event.absent) return 'delete'
    const { operation } = this.#options
    if (operation !== undefined) return operation(event)
    return event.type.endsWith('.deleted') ? 'delete' : 'upsert'
  }

  /** An error in the caller's functions concerns only this event. */
  #try<T>(at: number, work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      this.#outcomes[at] = rejected({ code: 'MAPPING_FAILED', message })
      return undefined
    }
  }

  /** Parked: the engine has accepted everything and is working on it. */
  async #send(groups: readonly Group[]): Promise<Parked | undefined> {
    const upserts: Upsert[] = []
    const upsertsAt: number[] = []
    const deletions: Deletion[] = []
    const deletionsAt: number[] = []
    for (const { id, entries } of groups) {
      const { event, at } = entries.at(-1) as Entry
      const version = event.position
      if (this.#operation(event) === 'delete') {
        deletions.push({ id, version })
        deletionsAt.push(at)
        continue
      }
      const json = this.#try(at, () => this.#json(event))
      if (json === undefined) continue
      upserts.push({ id, version, json })
      upsertsAt.push(at)
    }
    const { index } = this.#options
    const call = this.#call()
    const written = upserts.length === 0 ? [] : await this.#engine.upsert(index, upserts, call)
    const gone = deletions.length === 0 ? [] : await this.#engine.delete(index, deletions, call)
    const parked = joined([written, gone])
    if (parked !== undefined) return parked
    this.#keep(upsertsAt, await this.#outcomesOf(written, upserts.length))
    this.#keep(deletionsAt, await this.#outcomesOf(gone, deletions.length))
    return undefined
  }

  /** A handle covers the whole call, so a call that is partly settled cannot be parked. */
  #call(): ParkingWrite {
    const settled = this.#outcomes.some(({ outcome }) => outcome !== 'delivered')
    const mayPark = this.#engine.poll !== undefined && !settled
    const call = { signal: this.#signal }
    return mayPark ? { ...call, park: true } : (call as ParkingWrite)
  }

  /** If only a part was parked, that part is waited for. */
  async #outcomesOf(result: readonly Outcome[] | Parked, count: number): Promise<readonly Outcome[]> {
    if (!isParked(result)) return result
    const outcome = await waitFor(this.#engine, result, { signal: this.#signal })
    const many = outcome.outcome === 'rejected' && count > 1
    return Array.from({ length: count }, () => (many ? { ...outcome, outcome: 'split' } : outcome))
  }

  #json(event: OutboxEvent): string {
    const { map } = this.#options
    return map === undefined ? event.payloadText : JSON.stringify(map(event))
  }

  #keep(places: readonly number[], outcomes: readonly Outcome[]): void {
    places.forEach((at, index) => {
      this.#outcomes[at] = outcomes[index] as Outcome
    })
  }

  /** Success also covers older events; a temporary failure holds them back; a rejection is skipped. */
  #settle({ entries }: Group): void {
    const { at } = entries.pop() as Entry
    const outcome = this.#outcomes[at] as Outcome
    if (outcome.outcome === 'rejected') return
    const good = outcome.outcome === 'delivered' || outcome.outcome === 'superseded'
    for (const older of entries.splice(0)) this.#outcomes[older.at] = good ? superseded() : outcome
  }
}

/** One handle, if something is parked and nothing beside it has failed. */
function joined(results: readonly (readonly Outcome[] | Parked)[]): Parked | undefined {
  const parts = results.filter(isParked)
  const others = results.filter((result) => !isParked(result)) as (readonly Outcome[])[]
  if (parts.length === 0 || !others.flat().every(isGood)) return undefined
  return joinHandles(parts)
}
