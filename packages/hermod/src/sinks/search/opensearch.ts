/**
 * OpenSearch and Elasticsearch as a search engine, by plain HTTP. The position is the external version
 * of a document, so the server itself refuses whatever is older. An index is a set of generations
 * behind aliases.
 */
import { checkOptions, flag, integer, optional, type Problem, refuse, secret, text } from '../../check-options.ts'
import { httpUrl } from '../http.ts'
import type { Capabilities } from '../sink.ts'
import type { ResolvedRequest } from './check-request.ts'
import type { Call, Deletion, Health, ScanPage, Upsert } from './engine.ts'
import { displayed } from './items.ts'
import { isGone, type OpenSearchApi, OpenSearchHttp } from './opensearch/api.ts'
import { bulkOfDeletions, bulkOfUpserts, storedOf } from './opensearch/document.ts'
import { type OpenSearchGeneration, OpenSearchGenerations } from './opensearch/generations.ts'
import { outcomeOfFailure } from './opensearch/outcomes.ts'
import { scanIn, showWrites } from './opensearch/scan.ts'
import type { IndexSettings } from './opensearch/schema.ts'
import { searchIn } from './opensearch/search.ts'
import { sending } from './opensearch/write.ts'
import { EngineShell } from './shell.ts'

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

/** Exactly one way to authenticate. */
function authProblems({ username, password, apiKey, bearer }: Login): Problem[] {
  if ((username === undefined) !== (password === undefined)) {
    return [{ field: 'username', says: 'and password belong together' }]
  }
  const ways = [username, apiKey, bearer].filter((one) => one !== undefined)
  if (ways.length < 2) return []
  return [{ field: 'apiKey', says: 'must stand alone: one of username, apiKey and bearer' }]
}

/** A list of generations is used for so long. */
const listedMs = 1_000

export class OpenSearch extends EngineShell<OpenSearchGeneration> {
  readonly name = 'opensearch'
  readonly capabilities: Partial<Capabilities> = Object.freeze({
    itemsMax: 2_000,
    bytesMax: 8 * 1024 * 1024,
    perItemResult: true,
    externalVersion: true,
  })
  /** A little more than `listedMs`, for a write that has just read the list. */
  override readonly generationsMs = listedMs + 500
  readonly #api: OpenSearchApi

  constructor(api: OpenSearchApi, settings: IndexSettings) {
    super(new OpenSearchGenerations(api, settings), listedMs)
    this.#api = api
  }

  protected upserting(documents: readonly Upsert[]) {
    return sending(this.#api, bulkOfUpserts(documents))
  }

  protected deleting(documents: readonly Deletion[]) {
    return sending(this.#api, bulkOfDeletions(documents))
  }

  protected searchIn(generation: OpenSearchGeneration, request: ResolvedRequest, call: Call) {
    return searchIn({ api: this.#api, generation, request, call })
  }

  /** The newest state, even before a search can find it. */
  protected async getFrom({ alias, definition }: OpenSearchGeneration, id: string, call: Call) {
    const source = await this.#api.source(alias, id, call)
    if (source === undefined) return undefined
    const stored = storedOf(id, source)
    return { ...stored, document: displayed(definition, stored.document) }
  }

  protected async countIn({ alias }: OpenSearchGeneration, call: Call) {
    await showWrites(this.#api, alias, call)
    return this.#api.count(alias, call)
  }

  protected scanIn({ alias }: OpenSearchGeneration, page: ScanPage, call: Call) {
    return scanIn(this.#api, alias, page, call)
  }

  protected isMissing = isGone
  protected outcomeOf = outcomeOfFailure

  async probe(call: Call = {}): Promise<Health> {
    return { version: await this.#api.version(call) }
  }

  close(): Promise<void> {
    return this.#api.close()
  }
}
