/**
 * Algolia as a search engine. Its tasks are asynchronous: a write may be parked and polled. Versions
 * fence every write by a guarded partial update, and a deletion is a record without content for a
 * while, so an older state never wins, in whatever order tasks are applied.
 */
import { checkOptions, integer, list, optional, secret, text } from '../../check-options.ts'
import { httpUrl } from '../http.ts'
import type { Capabilities, Outcome, Parked } from '../sink.ts'
import type { AlgoliaApi } from './algolia/api.ts'
import { AlgoliaGenerations } from './algolia/generations.ts'
import { AlgoliaHttp, algoliaHosts } from './algolia/http.ts'
import { outcomeOfAlgoliaError, setupError } from './algolia/outcomes.ts'
import { deletionEntry, type Entry, liveKey, upsertEntry, versionOf } from './algolia/record.ts'
import { displayedOf, searchIn } from './algolia/search.ts'
import type { AlgoliaGeneration } from './algolia/state.ts'
import { handleOf, TaskPoll, waitForTasks } from './algolia/tasks.ts'
import { bytesMax, itemsMax, published, type Sent, send } from './algolia/write.ts'
import { checkDefinition, checkIndexName } from './check-definition.ts'
import { checkRequest } from './check-request.ts'
import type { IndexDefinition } from './definition.ts'
import type * as contract from './engine.ts'
import { pick, told } from './generations.ts'
import type { SearchRequest, SearchResult } from './request.ts'
import { worstOf } from './worst-outcome.ts'

export interface AlgoliaOptions {
  readonly appId: string
  /** Needs search, browse, addObject, deleteObject, deleteIndex, settings, editSettings, listIndexes. */
  readonly apiKey: string
  /** The host and the one that follows when it fails; Algolia's own when left out. */
  readonly hosts?: readonly string[]
  /** The most your plan allows for one record; 100,000 when left out. */
  readonly recordBytesMax?: number
  /** How long a deletion is remembered as a record; one day when left out. */
  readonly tombstonesMs?: number
  /** For one host; 10 s when left out. */
  readonly timeoutMs?: number
  /** How long the list of generations is believed; 1 s when left out. */
  readonly knownMs?: number
}

const APP_ID = /^[A-Za-z0-9]{1,40}$/
const purgeEveryMs = 3_600_000

const optionSpec = {
  appId: text((value) => (APP_ID.test(String(value)) ? undefined : 'must be an application id')),
  apiKey: secret(),
  hosts: optional(list(httpUrl(), { min: 1, max: 4 })),
  recordBytesMax: integer({ min: 1_000, max: 1_000_000, default: 100_000 }),
  tombstonesMs: integer({ min: 60_000, default: 86_400_000 }),
  timeoutMs: integer({ min: 100, max: 60_000, default: 10_000 }),
  knownMs: integer({ min: 0, max: 2_000, default: 1_000 }),
}

export function algolia(options: AlgoliaOptions): AlgoliaSearch {
  return new AlgoliaSearch(options)
}

export class AlgoliaSearch implements contract.SearchEngine {
  readonly name = 'algolia'
  readonly capabilities: Partial<Capabilities>
  readonly generationsMs: number
  readonly #api: AlgoliaApi
  readonly #generations: AlgoliaGenerations
  readonly #tasks: TaskPoll
  readonly #recordBytesMax: number
  readonly #tombstonesMs: number
  #purgedAtMs = Number.NEGATIVE_INFINITY

  /** `api` is for tests: the same engine on another client. */
  constructor(given: AlgoliaOptions, api?: AlgoliaApi) {
    const { hosts, ...options } = checkOptions('algolia', given, optionSpec)
    this.#api = api ?? new AlgoliaHttp({ ...options, hosts: hosts ?? algoliaHosts(options.appId) })
    this.#generations = new AlgoliaGenerations(this.#api, options.knownMs)
    this.#tasks = new TaskPoll(this.#api)
    this.#recordBytesMax = options.recordBytesMax
    this.#tombstonesMs = options.tombstonesMs
    this.generationsMs = options.knownMs
    this.capabilities = Object.freeze({
      itemsMax,
      bytesMax,
      perItemResult: false,
      asynchronous: true,
      externalVersion: true,
    })
  }

  ensureIndex(index: string, given: IndexDefinition, call: contract.Call = {}) {
    const definition = checkDefinition(index, given)
    return this.#told(`algolia index ${index}`, () => this.#generations.ensure(index, definition, call))
  }

  upsert(index: string, documents: readonly contract.Upsert[], options?: contract.Write): Promise<readonly Outcome[]>
  upsert(index: string, documents: readonly contract.Upsert[], options: contract.ParkingWrite): contract.MaybeParked
  upsert(index: string, documents: readonly contract.Upsert[], options: contract.Write = {}) {
    const entriesFor = ({ definition }: AlgoliaGeneration) =>
      documents.map((one) => upsertEntry(definition, one, this.#recordBytesMax))
    return this.#write(index, documents.length, entriesFor, options)
  }

  delete(index: string, documents: readonly contract.Deletion[], options?: contract.Write): Promise<readonly Outcome[]>
  delete(index: string, documents: readonly contract.Deletion[], options: contract.ParkingWrite): contract.MaybeParked
  delete(index: string, documents: readonly contract.Deletion[], options: contract.Write = {}) {
    const nowMs = Date.now()
    const entries = documents.map((one) => deletionEntry(one, nowMs, this.#recordBytesMax))
    return this.#write(
      index,
      documents.length,
      () => entries,
      options,
      (all) => this.#purge(all),
    )
  }

  poll(handles: readonly string[], call: contract.Call = {}) {
    return this.#tasks.poll(handles, call)
  }

  search(index: string, request: SearchRequest = {}): Promise<SearchResult> {
    const { generation, signal } = request
    return this.#reading(index, { generation, signal } as contract.Read, (found, call) => {
      const checked = checkRequest(index, found.definition, request)
      return searchIn(this.#api, found, checked, call)
    })
  }

  get(index: string, id: string, options: contract.Read = {}) {
    return this.#reading(index, options, async ({ indexName, definition }, call) => {
      const record = await this.#api.getObject(indexName, id, call)
      if (record === undefined || Number(record.deletedAt) > 0) return undefined
      const document = displayedOf(definition.fields, record.document)
      return { id, version: versionOf(record), hash: String(record.hash), document }
    })
  }

  count(index: string, options: contract.Read = {}) {
    return this.#reading(index, options, async ({ indexName }, call) => {
      const all = { indexName, query: '', hitsPerPage: 0, facetFilters: [`keys:${liveKey}`] }
      return (await this.#api.search([all], call))[0]?.nbHits ?? 0
    })
  }

  scan(index: string, { after, limit = 1_000, ...options }: contract.ScanPage = {}) {
    return this.#reading(index, options, async ({ indexName }, call) => {
      const params =
        after === undefined
          ? {
              query: '',
              facetFilters: [`keys:${liveKey}`],
              attributesToRetrieve: ['version', 'hash'],
              hitsPerPage: Math.min(limit, 1_000),
            }
          : { cursor: after }
      const { hits, cursor } = await this.#api.browse(indexName, params, call)
      const documents = hits.map((hit) => {
        return { id: hit.objectID, version: versionOf(hit), hash: hit.hash as string }
      })
      return { documents, ...(cursor !== undefined && { next: cursor }) }
    })
  }

  createGeneration(index: string, given: IndexDefinition, call: contract.Call = {}) {
    const definition = checkDefinition(index, given)
    return this.#changing(index, () => this.#generations.create(index, definition, call))
  }

  swapGeneration(index: string, call: contract.Call = {}) {
    return this.#changing(index, () => this.#generations.swap(index, call))
  }

  rollBackGeneration(index: string, call: contract.Call = {}) {
    return this.#changing(index, () => this.#generations.rollBack(index, call))
  }

  dropGeneration(index: string, id: string, call: contract.Call = {}): Promise<void> {
    return this.#told(`algolia index ${index}`, () => this.#generations.drop(index, id, call))
  }

  async generations(index: string, call: contract.Call = {}) {
    checkIndexName(index)
    return (await this.#generations.now(index, call)).map(told)
  }

  /** The name of the live index in Algolia: for a browser with a key of its own. */
  async indexName(index: string, call: contract.Call = {}): Promise<string> {
    return this.#reading(index, call, async ({ indexName }) => indexName)
  }

  /** Algolia is a service and tells no version of itself: the one of its API. */
  probe(call: contract.Call = {}): Promise<contract.Health> {
    return this.#told('algolia', async () => {
      await this.#api.listIndices(call)
      return { version: 'Search API 1' }
    })
  }

  close(): Promise<void> {
    return this.#api.close()
  }

  async #told<T>(what: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw setupError(error, what)
    }
  }

  async #changing(index: string, work: () => Promise<AlgoliaGeneration>): Promise<contract.Generation> {
    checkIndexName(index)
    return this.#told(`algolia index ${index}`, async () => told(await work()))
  }

  #reading<T>(
    index: string,
    { generation, signal }: contract.Read,
    work: (found: AlgoliaGeneration, call: contract.Call) => Promise<T>,
  ): Promise<T> {
    checkIndexName(index)
    const call = signal === undefined ? {} : { signal }
    return this.#told(`algolia index ${index}`, async () => {
      const all = await this.#generations.list(index, call)
      return work(pick(all, index, generation), call)
    })
  }

  /** Every generation hears every write. */
  async #write(
    index: string,
    items: number,
    entriesFor: (generation: AlgoliaGeneration) => readonly Entry[],
    { generation, signal, park = false }: contract.Write & { readonly park?: boolean },
    after?: (all: readonly AlgoliaGeneration[]) => Promise<void>,
  ): Promise<readonly Outcome[] | Parked> {
    if (items === 0) return []
    const call = signal === undefined ? {} : { signal }
    try {
      const all = await this.#generations.list(index, call)
      const first = pick(all, index, generation)
      const to = generation === undefined ? [first, ...all.filter((one) => one !== first)] : [first]
      const sent = await Promise.all(to.map((one) => send(this.#api, one.indexName, entriesFor(one), call)))
      await after?.(to)
      return await this.#settle(sent, park, call)
    } catch (error) {
      const outcome = outcomeOfAlgoliaError(error, items)
      return Array.from({ length: items }, () => outcome)
    }
  }

  /** Parked only as a whole: what failed already is told at once. */
  async #settle(sent: readonly Sent[], park: boolean, call: contract.Call): Promise<readonly Outcome[] | Parked> {
    const tasks = sent.flatMap((one) => one.tasks)
    const outcomes = worstOf(sent.map(published))
    const failed = outcomes.some(({ outcome }) => outcome !== 'delivered' && outcome !== 'superseded')
    const handle = park && !failed && tasks.length > 0 ? handleOf(tasks) : undefined
    if (handle !== undefined) return { parked: handle }
    await waitForTasks(this.#api, tasks, call)
    return outcomes
  }

  /** Now and then, in passing; by filter, so that a document that came back meanwhile stays. */
  async #purge(all: readonly AlgoliaGeneration[]): Promise<void> {
    const nowMs = Date.now()
    if (nowMs - this.#purgedAtMs < purgeEveryMs) return
    this.#purgedAtMs = nowMs
    const numericFilters = ['deletedAt>0', `deletedAt<${nowMs - this.#tombstonesMs}`]
    for (const { indexName } of all) {
      await this.#api.deleteBy(indexName, { numericFilters }).catch(() => {})
    }
  }
}
