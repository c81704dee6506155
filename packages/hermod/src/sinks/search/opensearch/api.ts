/**
 * The REST calls of OpenSearch and Elasticsearch that the engine needs, and nothing else: plain HTTP,
 * no retries. In tests the vendor's own client implements the same interface and runs the same cases.
 */
import { type HttpAnswer, HttpClient, HttpError, type HttpRequest } from '../../http.ts'
import { parseRetryAfter } from '../../retry-after.ts'

export interface ApiCall {
  readonly signal?: AbortSignal | undefined
}

export type Json = Readonly<Record<string, unknown>>

export interface IndexState {
  readonly aliases?: Json
  readonly mappings?: { readonly _meta?: Json }
}

export interface BulkItem {
  readonly _id: string
  readonly status: number
  readonly error?: { readonly type?: string; readonly reason?: string }
}

export interface BulkAnswer {
  /** One entry an action, in order: `{ index: … }` or `{ delete: … }`. */
  readonly items?: readonly Readonly<Record<string, BulkItem>>[]
}

export interface FoundHit {
  readonly _id: string
  readonly _score: number | null
  readonly _source: Json
  readonly sort?: readonly unknown[]
}

export interface Bucket {
  readonly key: string
  readonly doc_count: number
}

export interface Found {
  readonly timed_out?: boolean
  readonly hits: {
    readonly total?: { readonly value: number; readonly relation: 'eq' | 'gte' }
    readonly hits: readonly FoundHit[]
  }
  readonly aggregations?: Readonly<
    Record<string, { readonly values: { doc_count_error_upper_bound: number; buckets: readonly Bucket[] } }>
  >
}

export interface Token {
  readonly token: string
  readonly start_offset: number
}

export interface OpenSearchApi {
  /** The version the server gives itself. */
  version(call: ApiCall): Promise<string>
  createIndex(name: string, body: Json, call: ApiCall): Promise<void>
  /** Aliases and `_meta` of the indexes that match, by name. */
  indexes(pattern: string, call: ApiCall): Promise<Readonly<Record<string, IndexState>>>
  changeMeta(name: string, meta: Json, call: ApiCall): Promise<void>
  /** All of them or none. */
  changeAliases(actions: readonly Json[], call: ApiCall): Promise<void>
  dropIndex(name: string, call: ApiCall): Promise<void>
  refresh(name: string, call: ApiCall): Promise<void>
  /** Through an alias only, so that no index comes to be by being written to. */
  bulk(alias: string, lines: string, call: ApiCall): Promise<BulkAnswer>
  search(name: string, body: Json, call: ApiCall): Promise<Found>
  source(name: string, id: string, call: ApiCall): Promise<Json | undefined>
  count(name: string, call: ApiCall): Promise<number>
  analyze(name: string, analyzer: string, text: string, call: ApiCall): Promise<readonly Token[]>
  close(): Promise<void>
}

/** The server answered, and not what was asked for. */
export class OpenSearchError extends Error {
  readonly status: number
  /** `index_not_found_exception`; the only part that programs read. */
  readonly type: string
  readonly afterMs: number | undefined

  constructor(status: number, { type, reason }: Said, afterMs?: number) {
    super(`OpenSearch answered ${status} (${type})${reason === '' ? '' : `: ${reason}`}`)
    this.name = 'OpenSearchError'
    this.status = status
    this.type = type
    this.afterMs = afterMs
  }
}

export interface Said {
  readonly type: string
  readonly reason: string
}

export const bulkParameters = {
  require_alias: true,
  filter_path: 'items.*._id,items.*.status,items.*.error',
} as const
export const indexParameters = { filter_path: '*.aliases,*.mappings._meta' } as const

/** Half a result would pass for a whole one. */
export const searchParameters = { allow_partial_search_results: false } as const

export interface OpenSearchHttpOptions {
  readonly url: string
  readonly authorization?: string | undefined
  readonly timeoutMs: number
  readonly gzip: boolean
  readonly secrets: readonly string[]
}

const gzipFromBytes = 32 * 1024

export class OpenSearchHttp implements OpenSearchApi {
  readonly #http: HttpClient

  constructor({ url, authorization, timeoutMs, gzip, secrets }: OpenSearchHttpOptions) {
    this.#http = new HttpClient({
      url,
      timeoutMs,
      secrets,
      headers: authorization === undefined ? {} : { authorization },
      ...(gzip && { gzipFromBytes }),
    })
  }

  async version(call: ApiCall): Promise<string> {
    const { version } = await this.#json<{ version?: Json }>('GET', '/', call)
    return `${version?.distribution ?? 'elasticsearch'} ${version?.number}`
  }

  async createIndex(name: string, body: Json, call: ApiCall): Promise<void> {
    await this.#json('PUT', `/${name}`, call, { body })
  }

  indexes(pattern: string, call: ApiCall): Promise<Readonly<Record<string, IndexState>>> {
    return this.#json('GET', `/${pattern}`, call, { query: indexParameters })
  }

  async changeMeta(name: string, meta: Json, call: ApiCall): Promise<void> {
    await this.#json('PUT', `/${name}/_mapping`, call, { body: { _meta: meta } })
  }

  async changeAliases(actions: readonly Json[], call: ApiCall): Promise<void> {
    await this.#json('POST', '/_aliases', call, { body: { actions } })
  }

  async dropIndex(name: string, call: ApiCall): Promise<void> {
    await this.#json('DELETE', `/${name}`, call)
  }

  async refresh(name: string, call: ApiCall): Promise<void> {
    await this.#json('POST', `/${name}/_refresh`, call)
  }

  bulk(alias: string, lines: string, call: ApiCall): Promise<BulkAnswer> {
    const sent = { query: bulkParameters, body: lines, contentType: 'application/x-ndjson' }
    return this.#json('POST', `/${alias}/_bulk`, call, sent)
  }

  async search(name: string, body: Json, call: ApiCall): Promise<Found> {
    const query = searchParameters
    return readFound(await this.#json('POST', `/${name}/_search`, call, { query, body }))
  }

  async source(name: string, id: string, call: ApiCall): Promise<Json | undefined> {
    const path = `/${name}/_doc/${encodeURIComponent(id)}`
    const { signal } = call
    const answer = await this.#http.request({ method: 'GET', path, signal })
    const { found, _source } = answer.json() as { found?: boolean; _source?: Json }
    if (answer.status === 404 && found === false) return undefined
    if (answer.status !== 200) throw errorOf(answer)
    return _source
  }

  async count(name: string, call: ApiCall): Promise<number> {
    const { count } = await this.#json<{ count: number }>('GET', `/${name}/_count`, call)
    return count
  }

  async analyze(name: string, analyzer: string, text: string, call: ApiCall) {
    const body = { analyzer, text }
    const answer = await this.#json<{ tokens?: Token[] }>('POST', `/${name}/_analyze`, call, {
      body,
    })
    return answer.tokens ?? []
  }

  close(): Promise<void> {
    return this.#http.close()
  }

  async #json<T>(
    method: HttpRequest['method'],
    path: string,
    { signal }: ApiCall,
    rest: Pick<HttpRequest, 'query' | 'body' | 'contentType'> = {},
  ): Promise<T> {
    const answer = await this.#http.request({ method, path, signal, ...rest })
    if (answer.status < 200 || answer.status >= 300) throw errorOf(answer)
    const json = answer.json()
    if (typeof json !== 'object' || json === null) throw foreign()
    return json as T
  }
}

const foreign = () => new HttpError('HTTP_ANSWER_FOREIGN', 'an answer that is no object', true)

function errorOf({ status, headers, text }: HttpAnswer): OpenSearchError {
  return new OpenSearchError(status, saidIn(text), parseRetryAfter(headers['retry-after'], Date.now()))
}

function saidIn(text: string): Said {
  try {
    return readSaid(JSON.parse(text))
  } catch {
    return { type: 'foreign_answer', reason: 'something that is not from OpenSearch' }
  }
}

/** `{ error: { type, reason } }`; proxies in front say `{ message }`. */
export function readSaid(body: unknown): Said {
  const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown }
  if (typeof error === 'object' && error !== null) {
    const { type, reason } = error as { type?: unknown; reason?: unknown }
    return { type: String(type ?? 'error'), reason: discreet(String(reason ?? '')) }
  }
  return { type: 'error', reason: discreet(String(error ?? message ?? '')) }
}

/** Reasons quote what is in a document, and that belongs in no message. */
export function discreet(reason: string): string {
  return reason
    .replace(/\s*Preview of field's value:[\s\S]*$/, '')
    .replace(/'[^']*'|"[^"]*"/g, '…')
    .slice(0, 300)
}

export function readFound(answer: unknown): Found {
  const { hits, timed_out: late } = (answer ?? {}) as Partial<Found>
  if (!Array.isArray(hits?.hits) || late === true) throw foreign()
  return answer as Found
}

/** The type of OpenSearch's error for an index that is not there. */
export const MISSING = 'index_not_found_exception'

export function isOf(error: unknown, type: string): boolean {
  return error instanceof OpenSearchError && error.type === type
}

/** An index or an alias that is not there. */
export function isGone(error: unknown): boolean {
  return error instanceof OpenSearchError && error.status === 404
}
