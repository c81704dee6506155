/**
 * OpenSearch and Elasticsearch as a search engine, by plain HTTP. The position is the external version
 * of a document, so the server itself refuses whatever is older; an index is a set of generations
 * behind aliases.
 */
import { checkOptions, flag, integer, optional, type Problem, refuse, secret, text } from '../../check-options.ts'
import { HttpError, httpUrl } from '../http.ts'
import type { Capabilities, Outcome } from '../sink.ts'
import { checkDefinition, checkIndexName } from './check-definition.ts'
import { checkRequest } from './check-request.ts'
import type { IndexDefinition } from './definition.ts'
import type * as contract from './engine.ts'
import { pick, told } from './generations.ts'
import { type ApiCall, type Found, type OpenSearchApi, OpenSearchHttp } from './opensearch/api.ts'
import {
  generationsMs,
  isGone,
  isOf,
  type OpenSearchGeneration,
  OpenSearchGenerations,
} from './opensearch/generations.ts'
import { type IndexSettings, reserved } from './opensearch/mapping.ts'
import { outcomeOfFailure } from './opensearch/outcomes.ts'
import { searchIn, storedOf } from './opensearch/search.ts'
import { type Bulk, bulkOfDeletions, bulkOfUpserts, type Written, writeTo } from './opensearch/write.ts'
import type { SearchRequest, SearchResult } from './request.ts'
import { worstOf } from './worst-outcome.ts'

export interface OpenSearchOptions {
  /** `https://search.example.org:9200`; a path is kept. */
  readonly url: string
  /** Basic authentication, together. */
  readonly username?: string
  readonly password?: string
  /** `Authorization: ApiKey …`, as Elasticsearch encodes it. */
  readonly apiKey?: string
  /** `Authorization: Bearer …` */
  readonly bearer?: string
  /** Of a whole call; 30,000 when left out. Keep it below the subscription's lease. */
  readonly timeoutMs?: number
  /** Bodies from 32 kB on are compressed; true when left out. */
  readonly gzip?: boolean
  /** Of new indexes; 1 when left out. */
  readonly shards?: number
  /** Of new indexes; the server's default when left out. */
  readonly replicas?: number
  /** How long a deletion is remembered; 6 hours when left out. Longer than any retry. */
  readonly tombstonesMs?: number
}

const optionSpec = {
  url: httpUrl(),
  username: optional(text((value) => (value === '' ? 'must not be empty' : undefined))),
  password: optional(secret()),
  apiKey: optional(secret()),
  bearer: optional(secret()),
  timeoutMs: integer({ min: 100, max: 600_000, default: 30_000 }),
  gzip: flag(true),
  shards: integer({ min: 1, max: 1_024, default: 1 }),
  replicas: optional(integer({ min: 0, max: 20 })),
  tombstonesMs: integer({ min: 60_000, default: 6 * 3_600_000 }),
}

export function opensearch(given: OpenSearchOptions): OpenSearch {
  const options = checkOptions('opensearch', given, optionSpec)
  const { username, password, apiKey, bearer, url, timeoutMs, gzip } = options
  refuse('opensearch', authProblems(options))
  const basic = Buffer.from(`${username}:${password}`).toString('base64')
  const login = username === undefined ? undefined : `Basic ${basic}`
  const key = apiKey === undefined ? undefined : `ApiKey ${apiKey}`
  const authorization = login ?? key ?? (bearer === undefined ? undefined : `Bearer ${bearer}`)
  const secrets = [password, apiKey, bearer, basic].filter((one) => one !== undefined)
  return new OpenSearch(new OpenSearchHttp({ url, timeoutMs, gzip, authorization, secrets }), options)
}

type Login = { readonly [K in 'username' | 'password' | 'apiKey' | 'bearer']: string | undefined }

/** One way to say who asks. */
function authProblems({ username, password, apiKey, bearer }: Login): Problem[] {
  if ((username === undefined) !== (password === undefined)) {
    return [{ field: 'username', says: 'and password belong together' }]
  }
  const ways = [username, apiKey, bearer].filter((one) => one !== undefined)
  if (ways.length < 2) return []
  return [{ field: 'apiKey', says: 'must stand alone: one of username, apiKey and bearer' }]
}

export class OpenSearch implements contract.SearchEngine {
  readonly name = 'opensearch'
  readonly capabilities: Partial<Capabilities> = Object.freeze({
    itemsMax: 2_000,
    bytesMax: 8 * 1024 * 1024,
    perItemResult: true,
    externalVersion: true,
  })
  readonly generationsMs = generationsMs
  readonly #api: OpenSearchApi
  readonly #generations: OpenSearchGenerations

  constructor(api: OpenSearchApi, settings: IndexSettings) {
    this.#api = api
    this.#generations = new OpenSearchGenerations(api, settings)
  }

  async ensureIndex(index: string, given: IndexDefinition, call: contract.Call = {}) {
    return this.#generations.ensure(index, checkDefinition(index, given), call)
  }

  upsert(index: string, documents: readonly contract.Upsert[], options: contract.Write = {}) {
    return this.#write(index, bulkOfUpserts(documents), options)
  }

  delete(index: string, documents: readonly contract.Deletion[], options: contract.Write = {}) {
    return this.#write(index, bulkOfDeletions(documents), options)
  }

  search(index: string, given: SearchRequest = {}): Promise<SearchResult> {
    const { generation: wanted, signal } = given
    return this.#reading(index, { generation: wanted, signal }, (generation) => {
      const request = checkRequest(index, generation.definition, given)
      return searchIn({ api: this.#api, generation, request, call: { signal } })
    })
  }

  /** Of the newest, whether it can be found by searching already or not. */
  get(index: string, id: string, options: contract.Read = {}): Promise<contract.StoredDocument | undefined> {
    return this.#reading(index, options, async ({ alias, definition }) => {
      const source = await this.#api.source(alias, id, options)
      if (source === undefined) return undefined
      const stored = storedOf(id, source)
      const hidden = definition.fields.filter(({ displayed }) => !displayed)
      const document = { ...stored.document }
      for (const { name } of hidden) delete document[name]
      return { ...stored, document }
    })
  }

  count(index: string, options: contract.Read = {}): Promise<number> {
    return this.#reading(index, options, async ({ alias }) => {
      await this.#show(alias, options)
      return this.#api.count(alias, options)
    })
  }

  /** In key order; the cursor is the last id. The content is hashed as it is stored. */
  scan(index: string, { after, limit = 1_000, ...options }: contract.ScanPage = {}): Promise<contract.ScannedPage> {
    return this.#reading(index, options, async ({ alias }) => {
      if (after === undefined) await this.#show(alias, options)
      const { hits, size } = await this.#page(alias, { after, size: limit }, options)
      const documents = hits.hits.map(({ _id, _source }) => {
        const { id, version, hash } = storedOf(_id, _source)
        return { id, version, hash }
      })
      const last = documents.at(-1)
      return { documents, ...(documents.length === size && last && { next: last.id }) }
    })
  }

  /** Large documents make smaller pages. */
  async #page(
    alias: string,
    { after, size }: { readonly after: string | undefined; readonly size: number },
    call: ApiCall,
  ): Promise<Found & { readonly size: number }> {
    const body = {
      size,
      track_total_hits: false,
      sort: [{ [reserved.id]: 'asc' }],
      ...(after !== undefined && { search_after: [after] }),
    }
    try {
      return { ...(await this.#api.search(alias, body, call)), size }
    } catch (error) {
      const large = error instanceof HttpError && error.code === 'HTTP_ANSWER_TOO_LARGE'
      if (!large || size === 1) throw error
      return this.#page(alias, { after, size: Math.ceil(size / 2) }, call)
    }
  }

  /** What was written can be found from now on; who may not ask for it waits for the next second. */
  async #show(alias: string, call: ApiCall): Promise<void> {
    await this.#api.refresh(alias, call).catch((error) => {
      if (!isOf(error, 'security_exception')) throw error
    })
  }

  async createGeneration(index: string, given: IndexDefinition, call: contract.Call = {}) {
    return told(await this.#generations.make(index, checkDefinition(index, given), call))
  }

  async swapGeneration(index: string, call: contract.Call = {}) {
    return told(await this.#generations.swap(index, call))
  }

  async rollBackGeneration(index: string, call: contract.Call = {}) {
    return told(await this.#generations.rollBack(index, call))
  }

  dropGeneration(index: string, id: string, call: contract.Call = {}) {
    return this.#generations.drop(index, id, call)
  }

  async generations(index: string, call: contract.Call = {}) {
    return (await this.#generations.now(index, call)).map(told)
  }

  async probe(call: contract.Call = {}): Promise<contract.Health> {
    return { version: await this.#api.version(call) }
  }

  close(): Promise<void> {
    return this.#api.close()
  }

  async #reading<T>(
    index: string,
    { generation, signal }: { generation?: string | undefined; signal?: AbortSignal | undefined },
    work: (generation: OpenSearchGeneration) => Promise<T>,
  ): Promise<T> {
    checkIndexName(index)
    const call = { signal }
    const known = pick(await this.#generations.list(index, call), index, generation)
    try {
      return await work(known)
    } catch (error) {
      // Dropped since it was listed: whoever asks for the live one gets the one that is live now.
      if (!isGone(error)) throw error
      return work(pick(await this.#generations.now(index, call), index, generation))
    }
  }

  async #write(index: string, bulk: Bulk, options: contract.Write): Promise<readonly Outcome[]> {
    if (bulk.entries.length === 0) return []
    try {
      return worstOf(await this.#writeAll(index, bulk, options))
    } catch (error) {
      const outcome = outcomeOfFailure(error, bulk.entries.length)
      return bulk.entries.map(() => outcome)
    }
  }

  /**
   * Every generation hears every write, so that a new one misses nothing and an old one can return.
   * One that was dropped since they were listed has no say, and those that came instead are written.
   */
  async #writeAll(index: string, bulk: Bulk, { generation, signal }: contract.Write): Promise<(readonly Outcome[])[]> {
    const call = { signal }
    const written = new Map<string, Written>()
    let all = await this.#generations.list(index, call)
    for (let listed = 1; ; listed++) {
      const first = pick(all, index, generation)
      const others = generation === undefined ? all.filter((one) => one !== first) : []
      const wanted = [first, ...others]
      await Promise.all(
        wanted.map(async (one) => {
          if (!written.has(one.id)) written.set(one.id, await writeTo(this.#api, one, bulk, call))
        }),
      )
      const heard = wanted.flatMap(({ id }) => written.get(id) ?? [])
      if (listed > 1 || heard.every(({ gone }) => !gone)) return heard.map((one) => one.outcomes)
      all = await this.#generations.now(index, call)
    }
  }
}
