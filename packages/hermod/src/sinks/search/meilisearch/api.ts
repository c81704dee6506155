/**
 * The few operations of Meilisearch's REST API that the engine needs, and how they are spoken over
 * plain HTTP. A refusal is an error with the server's own code; nothing is repeated here.
 */
import { type HttpAnswer, HttpClient, HttpError, type HttpRequest } from '../../http.ts'
import type { Call } from '../engine.ts'

export interface MeilisearchApi {
  version(call?: Call): Promise<string>
  /** Every index the key may see. */
  indexes(call?: Call): Promise<readonly IndexInfo[]>
  /** These answer with the number of a task that runs later, in the order they were taken. */
  createIndex(uid: string, primaryKey: string, call?: Call): Promise<number>
  deleteIndex(uid: string, call?: Call): Promise<number>
  updateSettings(uid: string, settings: MeilisearchSettings, call?: Call): Promise<number>
  addDocuments(uid: string, ndjson: string, primaryKey: string, call?: Call): Promise<number>
  deleteDocuments(uid: string, ids: readonly string[], call?: Call): Promise<number>
  /** A deletion that matches nothing. The server never merges one by filter, so tasks on either side stay apart. */
  separate(uid: string, filter: string, call?: Call): Promise<number>
  swapIndexes(one: string, other: string, call?: Call): Promise<number>
  /** Those of the tasks that the server knows, in any order. */
  tasks(uids: readonly number[], call?: Call): Promise<readonly MeilisearchTask[]>
  /** How many tasks each batch held; servers from 1.12 on. */
  batchSizes(batches: readonly number[], call?: Call): Promise<ReadonlyMap<number, number>>
  settings(uid: string, call?: Call): Promise<MeilisearchSettings>
  /** Undefined when there is no such document. */
  document(uid: string, id: string, call?: Call): Promise<MeilisearchDocument | undefined>
  documents(uid: string, query: DocumentsQuery, call?: Call): Promise<readonly MeilisearchDocument[]>
  count(uid: string, call?: Call): Promise<number>
  /** One answer per query, in the order given. */
  multiSearch(queries: readonly SearchQuery[], call?: Call): Promise<readonly SearchAnswer[]>
  close(): Promise<void>
}

export type MeilisearchDocument = Readonly<Record<string, unknown>>
export type MeilisearchSettings = Readonly<Record<string, unknown>>

export interface IndexInfo {
  readonly uid: string
  readonly primaryKey: string | null
  readonly createdAt: string
}

export interface MeilisearchTask {
  readonly uid: number
  readonly indexUid?: string | null
  /** Tasks that were carried out together; servers from 1.12 on. */
  readonly batchUid?: number | null
  readonly status: 'enqueued' | 'processing' | 'succeeded' | 'failed' | 'canceled'
  readonly error?: TaskError | null
}

export interface TaskError {
  readonly code: string
  readonly type: string
  readonly message: string
}

export interface DocumentsQuery {
  readonly offset?: number
  readonly limit: number
  readonly fields?: readonly string[]
  readonly filter?: string
  /** Servers from 1.16 on. */
  readonly sort?: readonly string[]
}

export interface SearchQuery {
  readonly indexUid: string
  readonly q?: string
  readonly filter?: string
  readonly facets?: readonly string[]
  readonly sort?: readonly string[]
  readonly offset?: number
  readonly limit?: number
  readonly page?: number
  readonly hitsPerPage?: number
  readonly matchingStrategy?: 'all' | 'last' | 'frequency'
  readonly attributesToHighlight?: readonly string[]
  readonly highlightPreTag?: string
  readonly highlightPostTag?: string
  readonly showRankingScore?: boolean
  readonly showRankingScoreDetails?: boolean
}

export interface SearchAnswer {
  readonly hits: readonly MeilisearchDocument[]
  readonly facetDistribution?: Readonly<Record<string, Readonly<Record<string, number>>>> | null
  /** With `hitsPerPage`: exact, up to `maxTotalHits`. */
  readonly totalHits?: number
  readonly estimatedTotalHits?: number
}

export class MeilisearchError extends Error {
  /** 0: the error of a task. */
  readonly status: number
  readonly code: string
  readonly type: string
  readonly retryAfter: string | undefined
  /** The task was alone in its batch, and others passed: it failed by itself. */
  byItself = false

  constructor(status: number, { code, type, message }: TaskError, retryAfter?: string) {
    super(message)
    this.name = 'MeilisearchError'
    this.status = status
    this.code = code
    this.type = type
    this.retryAfter = retryAfter
  }
}

export interface MeilisearchHttpOptions {
  readonly url: string
  readonly key?: string | undefined
  readonly timeoutMs?: number | undefined
}

const indexesPerPage = 1_000
const gzipFromBytes = 2_048
/** Keeps the address of a request below what proxies take. */
const tasksPerCall = 200
/** Enough to tell a batch of one from others. */
export const tasksOfBatches = 1_000

export function meilisearchOverHttp(options: MeilisearchHttpOptions): MeilisearchApi {
  return new HttpApi(options)
}

class HttpApi implements MeilisearchApi {
  readonly #http: HttpClient

  constructor({ url, key, timeoutMs }: MeilisearchHttpOptions) {
    this.#http = new HttpClient({
      url,
      gzipFromBytes,
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(key !== undefined && { headers: { authorization: `Bearer ${key}` }, secrets: [key] }),
    })
  }

  async version(call?: Call): Promise<string> {
    const { pkgVersion } = await this.#json({ method: 'GET', path: '/version' }, call)
    return text(pkgVersion, 'pkgVersion')
  }

  async indexes(call?: Call): Promise<readonly IndexInfo[]> {
    const found: IndexInfo[] = []
    for (;;) {
      const query = { offset: found.length, limit: indexesPerPage }
      const page = list<IndexInfo>(await this.#json({ method: 'GET', path: '/indexes', query }, call))
      found.push(...page)
      if (page.length < indexesPerPage) return found
    }
  }

  createIndex(uid: string, primaryKey: string, call?: Call) {
    return this.#task({ method: 'POST', path: '/indexes', body: { uid, primaryKey } }, call)
  }

  deleteIndex(uid: string, call?: Call) {
    return this.#task({ method: 'DELETE', path: pathOf(uid) }, call)
  }

  updateSettings(uid: string, settings: MeilisearchSettings, call?: Call) {
    return this.#task({ method: 'PATCH', path: `${pathOf(uid)}/settings`, body: settings }, call)
  }

  addDocuments(uid: string, ndjson: string, primaryKey: string, call?: Call) {
    return this.#task(
      {
        method: 'POST',
        path: `${pathOf(uid)}/documents`,
        query: { primaryKey },
        body: ndjson,
        contentType: 'application/x-ndjson',
      },
      call,
    )
  }

  deleteDocuments(uid: string, ids: readonly string[], call?: Call) {
    return this.#task({ method: 'POST', path: `${pathOf(uid)}/documents/delete-batch`, body: ids }, call)
  }

  separate(uid: string, filter: string, call?: Call) {
    return this.#task({ method: 'POST', path: `${pathOf(uid)}/documents/delete`, body: { filter } }, call)
  }

  swapIndexes(one: string, other: string, call?: Call) {
    const body = [{ indexes: [one, other] }]
    return this.#task({ method: 'POST', path: '/swap-indexes', body }, call)
  }

  async tasks(uids: readonly number[], call?: Call): Promise<readonly MeilisearchTask[]> {
    const found: MeilisearchTask[] = []
    for (let at = 0; at < uids.length; at += tasksPerCall) {
      const some = uids.slice(at, at + tasksPerCall)
      const query = { uids: some.join(','), limit: some.length }
      found.push(...list<MeilisearchTask>(await this.#json({ method: 'GET', path: '/tasks', query }, call)))
    }
    return found
  }

  async batchSizes(batches: readonly number[], call?: Call): Promise<ReadonlyMap<number, number>> {
    const query = { batchUids: batches.join(','), limit: tasksOfBatches }
    return sizesOf(list<MeilisearchTask>(await this.#json({ method: 'GET', path: '/tasks', query }, call)))
  }

  async settings(uid: string, call?: Call): Promise<MeilisearchSettings> {
    return this.#json({ method: 'GET', path: `${pathOf(uid)}/settings` }, call)
  }

  async document(uid: string, id: string, call?: Call): Promise<MeilisearchDocument | undefined> {
    const path = `${pathOf(uid)}/documents/${encodeURIComponent(id)}`
    try {
      return await this.#json({ method: 'GET', path }, call)
    } catch (error) {
      if (error instanceof MeilisearchError && error.code === 'document_not_found') return undefined
      throw error
    }
  }

  async documents(uid: string, query: DocumentsQuery, call?: Call) {
    const path = `${pathOf(uid)}/documents/fetch`
    return list<MeilisearchDocument>(await this.#json({ method: 'POST', path, body: query }, call))
  }

  async count(uid: string, call?: Call): Promise<number> {
    const stats = await this.#json({ method: 'GET', path: `${pathOf(uid)}/stats` }, call)
    return whole(stats.numberOfDocuments, 'numberOfDocuments')
  }

  async multiSearch(queries: readonly SearchQuery[], call?: Call) {
    const body = { queries }
    return list<SearchAnswer>(await this.#json({ method: 'POST', path: '/multi-search', body }, call))
  }

  close(): Promise<void> {
    return this.#http.close()
  }

  async #task(request: HttpRequest, call?: Call): Promise<number> {
    return whole((await this.#json(request, call)).taskUid, 'taskUid')
  }

  async #json(request: HttpRequest, { signal }: Call = {}): Promise<Record<string, unknown>> {
    const answer = await this.#http.request({ ...request, signal })
    if (answer.status < 200 || answer.status > 299) throw errorOf(answer)
    return answer.json() as Record<string, unknown>
  }
}

const pathOf = (uid: string) => `/indexes/${encodeURIComponent(uid)}`

/** A proxy in between may answer in its own words. */
function errorOf(answer: HttpAnswer): MeilisearchError {
  const said = bodyOf(answer)
  const { status, headers } = answer
  const error = {
    code: typeof said.code === 'string' ? said.code : `http_${status}`,
    type: typeof said.type === 'string' ? said.type : '',
    message: typeof said.message === 'string' ? said.message : `HTTP ${status}`,
  }
  return new MeilisearchError(status, error, headers['retry-after'])
}

function bodyOf(answer: HttpAnswer): Record<string, unknown> {
  try {
    return (answer.json() ?? {}) as Record<string, unknown>
  } catch {
    return {}
  }
}

/** Nothing counts as answered that was not named. */
function foreign(field: string): HttpError {
  return new HttpError('HTTP_ANSWER_FOREIGN', `the answer has no ${field}: is it Meilisearch?`, true)
}

function text(value: unknown, field: string): string {
  if (typeof value === 'string') return value
  throw foreign(field)
}

function whole(value: unknown, field: string): number {
  if (Number.isSafeInteger(value)) return value as number
  throw foreign(field)
}

function list<T>({ results }: Record<string, unknown>): readonly T[] {
  if (Array.isArray(results)) return results as T[]
  throw foreign('results')
}

/** By batch. */
export function sizesOf(tasks: readonly MeilisearchTask[]): ReadonlyMap<number, number> {
  const sizes = new Map<number, number>()
  for (const { batchUid } of tasks) if (batchUid != null) sizes.set(batchUid, (sizes.get(batchUid) ?? 0) + 1)
  return sizes
}

export function isMissing(error: unknown): boolean {
  return error instanceof MeilisearchError && error.code === 'index_not_found'
}
