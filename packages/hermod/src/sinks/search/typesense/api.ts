/**
 * The REST calls of Typesense that the engine needs, and nothing else: plain HTTP, no retries. In
 * tests the vendor's own client implements the same interface and runs the same cases.
 */
import { type HttpAnswer, HttpClient, HttpError, type HttpRequest } from '../../http.ts'
import { parseRetryAfter } from '../../retry-after.ts'

export interface ApiCall {
  readonly signal?: AbortSignal | undefined
}

export interface CollectionField {
  readonly name: string
  readonly type: 'string' | 'string[]' | 'int64'
  readonly optional?: boolean
  readonly facet?: boolean
  readonly sort?: boolean
  readonly stem?: boolean
  readonly locale?: string
}

export type Metadata = Readonly<Record<string, unknown>>

export interface NewCollection {
  readonly name: string
  readonly fields: readonly CollectionField[]
  readonly token_separators: readonly string[]
  readonly metadata: Metadata
}

export interface Collection {
  readonly name: string
  /** Seconds since 1970. */
  readonly created_at: number
  readonly num_documents: number
  readonly metadata?: Metadata
}

/** Parameters of one search, by the names of the documentation. */
export type SearchParameters = Readonly<Record<string, string | number | boolean>> & {
  readonly collection: string
}

export type StoredFields = Readonly<Record<string, unknown>>

export interface FoundHit {
  readonly document: StoredFields
  readonly highlights?: readonly { readonly field: string; readonly matched_tokens: unknown }[]
  /** The score is 64 bits wide, so it is a text here. */
  readonly text_match_info?: { readonly score: string }
}

export interface CountedFacet {
  readonly field_name: string
  readonly sampled?: boolean
  readonly counts: readonly { readonly value: string; readonly count: number }[]
}

export interface Found {
  readonly found: number
  readonly search_cutoff?: boolean
  readonly hits: readonly FoundHit[]
  readonly facet_counts: readonly CountedFacet[]
}

export interface TypesenseApi {
  health(call: ApiCall): Promise<void>
  version(call: ApiCall): Promise<string>
  collections(call: ApiCall): Promise<readonly Collection[]>
  collection(name: string, call: ApiCall): Promise<Collection>
  createCollection(collection: NewCollection, call: ApiCall): Promise<void>
  changeMetadata(name: string, metadata: Metadata, call: ApiCall): Promise<void>
  dropCollection(name: string, call: ApiCall): Promise<void>
  /** The collection an alias stands for. */
  alias(name: string, call: ApiCall): Promise<string | undefined>
  setAlias(name: string, collection: string, call: ApiCall): Promise<void>
  /** The answer as it came: a line for each line sent. */
  importDocuments(collection: string, lines: string, call: ApiCall): Promise<string>
  deleteDocuments(collection: string, filter: string, call: ApiCall): Promise<void>
  document(collection: string, id: string, call: ApiCall): Promise<StoredFields | undefined>
  multiSearch(searches: readonly SearchParameters[], call: ApiCall): Promise<readonly Found[]>
  close(): Promise<void>
}

/** The server catches up, is in maintenance or protects itself: nothing is wrong with what was sent. */
export const BUSY =
  /lagging|not ready|running out of resource|out_of_(memory|disk)|skipping writes|update operation is in progress/i

/** Typesense answered, and not what was asked for. */
export class TypesenseError extends Error {
  /** 503 whenever the server cannot take anything now: it often answers 422, which blames the request. */
  readonly status: number
  readonly afterMs: number | undefined

  constructor(status: number, says: string, afterMs?: number) {
    super(`Typesense answered ${status}: ${says}`)
    this.name = 'TypesenseError'
    this.status = BUSY.test(says) ? 503 : status
    this.afterMs = afterMs
  }
}

export const importParameters = {
  action: 'upsert',
  dirty_values: 'reject',
  return_id: true,
} as const

const sentenceCharsMax = 300

export interface TypesenseHttpOptions {
  readonly url: string
  readonly apiKey: string
  readonly timeoutMs: number
}

export class TypesenseHttp implements TypesenseApi {
  readonly #http: HttpClient

  constructor({ url, apiKey, timeoutMs }: TypesenseHttpOptions) {
    const headers = { 'x-typesense-api-key': apiKey }
    this.#http = new HttpClient({ url, headers, timeoutMs, secrets: [apiKey] })
  }

  async health(call: ApiCall): Promise<void> {
    await this.#ask({ method: 'GET', path: '/health' }, call)
  }

  async version(call: ApiCall): Promise<string> {
    const { version } = await this.#json<{ version: string }>('GET', '/debug', call)
    return String(version)
  }

  collections(call: ApiCall): Promise<readonly Collection[]> {
    const query = { exclude_fields: 'fields' }
    return this.#json('GET', '/collections', call, { query })
  }

  collection(name: string, call: ApiCall): Promise<Collection> {
    return this.#json('GET', `/collections/${name}`, call)
  }

  async createCollection(collection: NewCollection, call: ApiCall): Promise<void> {
    await this.#json('POST', '/collections', call, { body: collection })
  }

  async changeMetadata(name: string, metadata: Metadata, call: ApiCall): Promise<void> {
    await this.#json('PATCH', `/collections/${name}`, call, { body: { metadata } })
  }

  async dropCollection(name: string, call: ApiCall): Promise<void> {
    await this.#json('DELETE', `/collections/${name}`, call)
  }

  async alias(name: string, call: ApiCall): Promise<string | undefined> {
    const asked = this.#json<{ collection_name: string }>('GET', `/aliases/${name}`, call)
    return (await orMissing(asked))?.collection_name
  }

  async setAlias(name: string, collection: string, call: ApiCall): Promise<void> {
    await this.#json('PUT', `/aliases/${name}`, call, { body: { collection_name: collection } })
  }

  async importDocuments(collection: string, lines: string, call: ApiCall): Promise<string> {
    const request: HttpRequest = {
      method: 'POST',
      path: `/collections/${collection}/documents/import`,
      query: importParameters,
      body: lines,
      contentType: 'text/plain',
    }
    return (await this.#ask(request, call)).text
  }

  async deleteDocuments(collection: string, filter: string, call: ApiCall): Promise<void> {
    const path = `/collections/${collection}/documents`
    await this.#json('DELETE', path, call, { query: { filter_by: filter } })
  }

  document(collection: string, id: string, call: ApiCall): Promise<StoredFields | undefined> {
    const path = `/collections/${collection}/documents/${id}`
    return orMissing(this.#json<StoredFields>('GET', path, call), /document/i)
  }

  async multiSearch(searches: readonly SearchParameters[], call: ApiCall): Promise<readonly Found[]> {
    const answer = await this.#json<{ results: unknown }>('POST', '/multi_search', call, {
      body: { searches },
    })
    return readResults(answer.results, searches.length)
  }

  close(): Promise<void> {
    return this.#http.close()
  }

  async #json<T>(
    method: HttpRequest['method'],
    path: string,
    call: ApiCall,
    rest: Pick<HttpRequest, 'query' | 'body'> = {},
  ): Promise<T> {
    return (await this.#ask({ method, path, ...rest }, call)).json() as T
  }

  async #ask(request: HttpRequest, { signal }: ApiCall): Promise<HttpAnswer> {
    const answer = await this.#http.request({ ...request, signal })
    if (answer.status >= 200 && answer.status < 300) return answer
    throw errorOf(answer)
  }
}

function errorOf({ status, headers, text }: HttpAnswer): TypesenseError {
  const afterMs = parseRetryAfter(headers['retry-after'], Date.now())
  return new TypesenseError(status, sentenceOf(text), afterMs)
}

function sentenceOf(text: string): string {
  try {
    const { message, resource_error: resource } = JSON.parse(text)
    return String(message ?? resource ?? 'without a reason').slice(0, sentenceCharsMax)
  } catch {
    return 'something that is not from Typesense'
  }
}

/** Undefined for 404; with `only`, for those that say so: a missing collection is another matter. */
export async function orMissing<T>(asked: Promise<T>, only = /./): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    const missing = error instanceof TypesenseError && error.status === 404
    if (missing && only.test(error.message.slice('Typesense answered 404: '.length))) return
    throw error
  }
}

/** A search may fail inside an answer that succeeded. */
export function readResults(results: unknown, expected: number): readonly Found[] {
  if (!Array.isArray(results) || results.length !== expected) {
    const says = `${expected} searches were asked, and as many results did not come`
    throw new HttpError('HTTP_ANSWER_FOREIGN', says, true)
  }
  for (const { code, error } of results) {
    if (error === undefined) continue
    throw new TypesenseError(Number(code ?? 400), String(error).slice(0, sentenceCharsMax))
  }
  return results
}

/** A collection that is not there. */
export function isMissing(error: unknown): boolean {
  return error instanceof TypesenseError && error.status === 404
}
