/**
 * Algolia as a search engine. Its tasks are asynchronous: a write may be parked and polled. Every write is
 * a partial update guarded by the version, and a deletion is a record without content for a while. So an
 * older state never wins, in whatever order tasks are applied.
 */
import { checkOptions, integer, list, optional, secret, text } from '../../check-options.ts'
import { httpUrl } from '../http.ts'
import type { Capabilities } from '../sink.ts'
import { type AlgoliaApi, AlgoliaHttp, algoliaHosts } from './algolia/api.ts'
import { liveKey, storedOf } from './algolia/document.ts'
import { AlgoliaGenerations } from './algolia/generations.ts'
import { outcomeOfAlgoliaError, setupError } from './algolia/outcomes.ts'
import { scanIn } from './algolia/scan.ts'
import { searchIn } from './algolia/search.ts'
import type { AlgoliaGeneration } from './algolia/state.ts'
import { TaskPoll } from './algolia/tasks.ts'
import { AlgoliaWriter, bytesMax, itemsMax } from './algolia/write.ts'
import { checkDefinition } from './check-definition.ts'
import type { Values } from './check-document.ts'
import type { ResolvedRequest } from './check-request.ts'
import type { IndexDefinition } from './definition.ts'
import type { Call, Deletion, Health, ScanPage, Upsert } from './engine.ts'
import { displayed } from './items.ts'
import { EngineShell, type Looking } from './shell.ts'

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
  /** How long the list of generations is cached; 1 s when left out. */
  readonly knownMs?: number
}

const APP_ID = /^[A-Za-z0-9]{1,40}$/

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

export class AlgoliaSearch extends EngineShell<AlgoliaGeneration> {
  readonly name = 'algolia'
  readonly capabilities: Partial<Capabilities> = Object.freeze({
    itemsMax,
    bytesMax,
    perItemResult: false,
    asynchronous: true,
    externalVersion: true,
  })
  override readonly generationsMs: number
  readonly #api: AlgoliaApi
  readonly #tasks: TaskPoll
  readonly #writer: AlgoliaWriter

  /** `api` is for tests: the same engine on another client. */
  constructor(given: AlgoliaOptions, api?: AlgoliaApi) {
    const { hosts, knownMs, ...options } = checkOptions('algolia', given, optionSpec)
    const ours = api ?? new AlgoliaHttp({ ...options, hosts: hosts ?? algoliaHosts(options.appId) })
    super(new AlgoliaGenerations(ours, knownMs), knownMs)
    this.#api = ours
    this.#tasks = new TaskPoll(ours)
    this.#writer = new AlgoliaWriter(ours, options)
    this.generationsMs = knownMs
  }

  protected upserting(documents: readonly Upsert[]) {
    return this.#writer.upserting(documents)
  }

  protected deleting(documents: readonly Deletion[]) {
    return this.#writer.deleting(documents)
  }

  poll(handles: readonly string[], call: Call = {}) {
    return this.#tasks.poll(handles, call)
  }

  protected searchIn(generation: AlgoliaGeneration, request: ResolvedRequest, call: Call) {
    return searchIn(this.#api, generation, request, call)
  }

  protected async getFrom({ indexName, definition }: AlgoliaGeneration, id: string, call: Looking) {
    const record = await this.#api.getObject(indexName, id, call)
    if (record === undefined || Number(record.deletedAt) > 0) return undefined
    return storedOf(definition, record, call.fast)
  }

  protected async countIn({ indexName }: AlgoliaGeneration, call: Call) {
    const all = { indexName, query: '', hitsPerPage: 0, facetFilters: [`keys:${liveKey}`] }
    return (await this.#api.search([all], call))[0]?.nbHits ?? 0
  }

  protected scanIn(generation: AlgoliaGeneration, page: ScanPage, call: Call) {
    return scanIn(this.#api, generation, page, call)
  }

  /** Hidden fields are never given back, whoever asks. */
  givesBack(document: Values, definition: IndexDefinition) {
    return displayed(checkDefinition('index', definition), document)
  }

  /** An index is only deleted when no process can still use it. */
  protected isMissing = () => false
  protected outcomeOf = outcomeOfAlgoliaError

  protected override explained(error: unknown, index: string): unknown {
    return setupError(error, `algolia index ${index}`)
  }

  /** The name of the live index in Algolia: for a browser with a key of its own. */
  async indexName(index: string, call: Call = {}): Promise<string> {
    return this.reading(index, call, async ({ indexName }) => indexName)
  }

  /** Algolia is a service and tells no version of itself: the one of its API. */
  async probe(call: Call = {}): Promise<Health> {
    try {
      await this.#api.listIndices(call)
      return { version: 'Search API 1' }
    } catch (error) {
      throw setupError(error, 'algolia')
    }
  }

  close(): Promise<void> {
    return this.#api.close()
  }
}
