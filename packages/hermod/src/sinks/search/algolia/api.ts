/**
 * The calls to Algolia that the engine needs, and our plain HTTP client for them. What the service refuses
 * is thrown as AlgoliaFailure. A host that is down, slow or answers 5xx is followed by the next one, once;
 * every other retry is the outbox's. Sending a batch twice is harmless: the version guards it.
 */
import { HttpClient, HttpError, type HttpRequest } from '../../http.ts'
import type { Call } from '../engine.ts'

export interface AlgoliaApi {
  /** `body` is the text of `{"requests":[…]}`; all of them are accepted, or none. */
  batch(index: string, body: string, call?: Call): Promise<AlgoliaTask>
  taskStatus(index: string, taskID: number, call?: Call): Promise<'published' | 'notPublished'>
  /** Undefined: no such record, or no such index. */
  getObject(index: string, objectID: string, call?: Call): Promise<AlgoliaRecord | undefined>
  /** All of them are answered, or none. */
  search(queries: readonly AlgoliaQuery[], call?: Call): Promise<readonly AlgoliaAnswer[]>
  browse(index: string, params: object, call?: Call): Promise<AlgoliaPage>
  /** Undefined: no such index. */
  getSettings(index: string, call?: Call): Promise<AlgoliaSettings | undefined>
  /** An index that is not there is made. */
  setSettings(index: string, settings: AlgoliaSettings, call?: Call): Promise<AlgoliaTask>
  deleteIndex(index: string, call?: Call): Promise<AlgoliaTask>
  deleteBy(index: string, params: object, call?: Call): Promise<AlgoliaTask>
  listIndices(call?: Call): Promise<readonly string[]>
  close(): Promise<void>
}

export interface AlgoliaTask {
  readonly taskID: number
}

export interface AlgoliaRecord {
  readonly objectID: string
  readonly [attribute: string]: unknown
}

export interface AlgoliaSettings {
  readonly userData?: unknown
  readonly [setting: string]: unknown
}

export interface AlgoliaQuery {
  readonly indexName: string
  readonly query: string
  readonly [parameter: string]: unknown
}

export interface AlgoliaHit extends AlgoliaRecord {
  readonly _highlightResult?: unknown
  readonly _rankingInfo?: { readonly nbTypos?: number }
}

export interface AlgoliaAnswer {
  readonly hits: readonly AlgoliaHit[]
  readonly nbHits: number
  readonly facets?: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly exhaustive?: { readonly nbHits?: boolean; readonly facetsCount?: boolean }
}

export interface AlgoliaPage {
  readonly hits: readonly AlgoliaRecord[]
  /** Absent on the last page. */
  readonly cursor?: string
}

export interface AlgoliaFailureDetails {
  readonly retryAfter?: string | undefined
  /** Which record of a batch is meant, and its id. */
  readonly position?: number | undefined
  readonly objectID?: string | undefined
}

/** An answer that is not 2xx, in the service's words. */
export class AlgoliaFailure extends Error {
  override readonly name = 'AlgoliaFailure'
  readonly status: number
  readonly details: AlgoliaFailureDetails

  constructor(status: number, message: string, details: AlgoliaFailureDetails = {}) {
    super(message)
    this.status = status
    this.details = details
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof AlgoliaFailure && error.status === 404
}

export interface AlgoliaHttpOptions {
  readonly appId: string
  readonly apiKey: string
  /** In the order they are tried; the first two count. */
  readonly hosts: readonly string[]
  readonly timeoutMs: number
}

const gzipFromBytes = 16_384
const indicesPagesMax = 100

/** Writes and reads go to the same hosts, so that what was written can be read. */
export function algoliaHosts(appId: string): readonly string[] {
  return [`https://${appId}.algolia.net`, `https://${appId}-1.algolianet.com`]
}

export class AlgoliaHttp implements AlgoliaApi {
  readonly #hosts: readonly HttpClient[]

  constructor({ appId, apiKey, hosts, timeoutMs }: AlgoliaHttpOptions) {
    const headers = { 'x-algolia-application-id': appId, 'x-algolia-api-key': apiKey }
    this.#hosts = hosts.slice(0, 2).map((url) => {
      return new HttpClient({ url, headers, timeoutMs, gzipFromBytes, secrets: [apiKey] })
    })
  }

  batch(index: string, body: string, call?: Call): Promise<AlgoliaTask> {
    const request = { contentType: 'application/json', body }
    return this.#task({ method: 'POST', path: `${of(index)}/batch`, ...request }, call)
  }

  async taskStatus(index: string, taskID: number, call?: Call) {
    const path = `${of(index)}/task/${taskID}`
    const { status } = await this.#json<{ status: string }>({ method: 'GET', path }, call)
    return status === 'published' ? 'published' : 'notPublished'
  }

  getObject(index: string, objectID: string, call?: Call) {
    const path = `${of(index)}/${encodeURIComponent(objectID)}`
    return ifThere(this.#json<AlgoliaRecord>({ method: 'GET', path }, call))
  }

  async search(queries: readonly AlgoliaQuery[], call?: Call): Promise<readonly AlgoliaAnswer[]> {
    const request = { method: 'POST', path: '/1/indexes/*/queries' } as const
    const body = { requests: queries }
    const { results } = await this.#json<{ results?: AlgoliaAnswer[] }>({ ...request, body }, call)
    if (Array.isArray(results) && results.length === queries.length) return results
    throw new HttpError('HTTP_ANSWER_FOREIGN', 'an answer without results', true)
  }

  browse(index: string, params: object, call?: Call): Promise<AlgoliaPage> {
    return this.#json({ method: 'POST', path: `${of(index)}/browse`, body: params }, call)
  }

  getSettings(index: string, call?: Call) {
    const path = `${of(index)}/settings`
    return ifThere(this.#json<AlgoliaSettings>({ method: 'GET', path }, call))
  }

  setSettings(index: string, settings: AlgoliaSettings, call?: Call): Promise<AlgoliaTask> {
    return this.#task({ method: 'PUT', path: `${of(index)}/settings`, body: settings }, call)
  }

  deleteIndex(index: string, call?: Call): Promise<AlgoliaTask> {
    return this.#task({ method: 'DELETE', path: of(index) }, call)
  }

  deleteBy(index: string, params: object, call?: Call): Promise<AlgoliaTask> {
    return this.#task({ method: 'POST', path: `${of(index)}/deleteByQuery`, body: params }, call)
  }

  async listIndices(call?: Call): Promise<readonly string[]> {
    const names: string[] = []
    for (let page = 0; page < indicesPagesMax; page++) {
      const request = { method: 'GET', path: '/1/indexes', query: { page } } as const
      const { items = [], nbPages = 1 } = await this.#json<{
        items?: readonly { name: string }[]
        nbPages?: number
      }>(request, call)
      names.push(...items.map(({ name }) => name))
      if (page + 1 >= nbPages) break
    }
    return names
  }

  async close(): Promise<void> {
    await Promise.all(this.#hosts.map((host) => host.close()))
  }

  /** Without a task nothing was accepted. */
  async #task(request: HttpRequest, call: Call | undefined): Promise<AlgoliaTask> {
    const task = await this.#json<AlgoliaTask>(request, call)
    if (Number.isSafeInteger(task?.taskID)) return task
    throw new HttpError('HTTP_ANSWER_FOREIGN', 'an answer without a taskID', true)
  }

  async #json<T>(request: HttpRequest, call: Call = {}): Promise<T> {
    const [first, ...others] = this.#hosts
    let failed: unknown
    for (const host of [first as HttpClient, ...others]) {
      try {
        return (await this.#ask(host, { ...request, signal: call.signal })) as T
      } catch (error) {
        if (call.signal?.aborted || !isHostFailure(error)) throw error
        failed = error
      }
    }
    throw failed
  }

  async #ask(host: HttpClient, request: HttpRequest): Promise<unknown> {
    const answer = await host.request(request)
    if (answer.status >= 200 && answer.status < 300) return answer.json()
    const said = parsed(answer.text)
    throw new AlgoliaFailure(answer.status, said.message || `HTTP ${answer.status}`, {
      retryAfter: answer.headers['retry-after'],
      position: said.position,
      objectID: said.objectID,
    })
  }
}

const of = (index: string) => `/1/indexes/${encodeURIComponent(index)}`

function isHostFailure(error: unknown): boolean {
  return error instanceof AlgoliaFailure ? error.status >= 500 : error instanceof HttpError
}

async function ifThere<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

function parsed(text: string): { message?: string; position?: number; objectID?: string } {
  try {
    const { message, position, objectID } = JSON.parse(text)
    return {
      ...(typeof message === 'string' && { message }),
      ...(Number.isInteger(position) && { position }),
      ...(typeof objectID === 'string' && { objectID }),
    }
  } catch {
    return {}
  }
}
