/**
 * A double of Algolia's Search API for tests: an HTTP server (two, for the fallback host) made from
 * the public REST documentation. It is not Algolia. It has the task queue, batches that pass or fail
 * as a whole, built-in operations of partial updates, settings, copy and move, browsing, queries with
 * facets, filters, typing errors and highlights, keys, quotas and limits with their messages, and
 * faults on demand. It has no rules, synonyms, replicas, geo search, distinct, analytics, A/B tests,
 * secured keys or clusters, splits no words, and ranks more coarsely than the service does.
 */
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { BadFilter } from './double-filters.ts'
import { type BatchRequest, DoubleApplication } from './double-index.ts'
import { browse, retrieved, type SearchParams, search } from './double-search.ts'

export interface Asked {
  /** 0 is the main host, 1 the fallback. */
  readonly host: number
  readonly method: string
  readonly path: string
  readonly body: unknown
}

/** What happens to a request instead of, or after, the right answer. */
export type Fault =
  | { readonly status: number; readonly message?: string; readonly retryAfter?: string }
  | { readonly text: string }
  /** The connection breaks before anything is done, after it was accepted, or within the answer. */
  | { readonly cut: 'before' | 'after' | 'within' }
  /** Accepted, but the answer never comes. */
  | { readonly hang: true }

export interface AlgoliaDoubleOptions {
  readonly appId?: string
  readonly apiKey?: string
}

class Refused extends Error {
  readonly status: number
  readonly more: object

  constructor(status: number, message: string, more: object = {}) {
    super(message)
    this.status = status
    this.more = more
  }
}

const missing = (index: string) => new Refused(404, `Index ${index} does not exist`)
const quotaSays = 'You have exceeded your Record quota. Change your plan for more capacity, or delete records.'

export class AlgoliaDouble {
  readonly appId: string
  readonly apiKey: string
  readonly application = new DoubleApplication()
  /** Every request, in order. */
  readonly asked: Asked[] = []
  /** Called first; what it returns happens instead. */
  fault: ((asked: Asked) => Fault | undefined) | undefined
  recordsMax = Number.POSITIVE_INFINITY
  recordBytesMax = 100_000
  pendingMax = 5_000
  readonly #servers: http.Server[] = []
  readonly #sockets = new Set<Socket>()

  private constructor({ appId = 'DOUBLEAPP', apiKey = 'double-admin-key' }: AlgoliaDoubleOptions) {
    this.appId = appId
    this.apiKey = apiKey
  }

  static async start(options: AlgoliaDoubleOptions = {}): Promise<AlgoliaDouble> {
    const double = new AlgoliaDouble(options)
    for (const host of [0, 1]) await double.#listen(host)
    return double
  }

  /** The main host, then the fallback. */
  get hosts(): string[] {
    return this.#servers.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  }

  /** Connections break, and new ones are refused; what `open` undoes. */
  async shut(): Promise<() => Promise<void>> {
    const ports = this.#servers.map((server) => (server.address() as AddressInfo).port)
    await this.stop()
    return async () => {
      for (const [host, server] of this.#servers.entries()) {
        await new Promise<void>((resolve) => server.listen(ports[host], '127.0.0.1', resolve))
      }
    }
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))))
  }

  #listen(host: number): Promise<void> {
    const server = http.createServer((request, response) => {
      this.#serve(host, request, response).catch(() => response.destroy())
    })
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    this.#servers.push(server)
    return new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  }

  async #serve(host: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://double')
    const asked = {
      host,
      method: request.method ?? '',
      path: url.pathname,
      body: await bodyOf(request),
    }
    this.asked.push(asked)
    const fault = this.fault?.(asked)
    if (fault !== undefined && 'status' in fault) {
      if (fault.retryAfter !== undefined) response.setHeader('retry-after', fault.retryAfter)
      return answer(response, fault.status, { message: fault.message ?? '', status: fault.status })
    }
    if (fault !== undefined && 'text' in fault) return void response.end(fault.text)
    if (fault !== undefined && 'cut' in fault && fault.cut === 'before') {
      return void response.destroy()
    }
    const [status, body] = this.#respond(request, url, asked)
    if (fault === undefined) return answer(response, status, body)
    if ('hang' in fault) return
    if ('cut' in fault && fault.cut === 'after') return void response.destroy()
    response.writeHead(status, { 'content-length': 10_000 })
    response.write('{"hits":[', () => response.destroy())
  }

  #respond(request: IncomingMessage, url: URL, asked: Asked): [number, object] {
    try {
      this.#admit(request, url)
      const parts = url.pathname.split('/').slice(1).map(decodeURIComponent)
      const [version, area, index, ...rest] = parts
      if (version !== '1' || area !== 'indexes') throw new Refused(404, 'Path not found')
      if (index === undefined) return [200, this.#list()]
      return [200, this.#route(asked, index, rest)]
    } catch (error) {
      if (error instanceof BadFilter) return [400, { message: error.message, status: 400 }]
      if (!(error instanceof Refused)) throw error
      return [error.status, { message: error.message, ...error.more, status: error.status }]
    }
  }

  #admit({ headers }: IncomingMessage, { searchParams }: URL): void {
    const given = (name: string) => headers[name] ?? searchParams.get(name)
    const fits = given('x-algolia-application-id') === this.appId && given('x-algolia-api-key') === this.apiKey
    if (!fits) throw new Refused(403, 'Invalid Application-ID or API key')
  }

  #route({ method, body }: Asked, name: string, rest: readonly string[]): object {
    const [what = '', id] = rest
    const params = (body ?? {}) as Record<string, unknown>
    if (name === '*' && what === 'queries') return this.#queries(params)
    if (name === '*' && what === 'objects') return this.#objects(params)
    switch (`${method} ${what}`) {
      case 'GET settings':
        return this.#settings(name)
      case 'PUT settings':
        return this.#accepted(this.application.setSettings(name, params))
      case 'GET task':
        return this.#task(Number(id))
      case 'POST batch':
        return this.#batch(name, params)
      case 'POST query':
        return this.#query({ ...params, indexName: name })
      case 'POST browse':
        return this.#browse(name, params)
      case 'POST deleteByQuery':
        return this.#deleteBy(name, params)
      case 'POST clear':
        return this.#accepted(this.application.batch(name, [{ action: 'clear', body: {} }]))
      case 'POST operation':
        return this.#operation(name, params)
      case 'DELETE ':
        return this.#accepted(this.application.deleteIndex(name), 'deletedAt')
    }
    if (method === 'GET' && id === undefined) return this.#object(name, what)
    if (method === 'DELETE' && id === undefined) {
      const task = this.application.batch(name, [{ action: 'deleteObject', body: { objectID: what } }])
      return this.#accepted(task, 'deletedAt')
    }
    throw new Refused(404, 'Path not found')
  }

  #accepted(taskID: number, at = 'updatedAt'): object {
    return { taskID, [at]: new Date().toISOString() }
  }

  #index(name: string) {
    const index = this.application.indices.get(name)
    if (index === undefined) throw missing(name)
    return index
  }

  #list(): object {
    const items = [...this.application.indices].map(([name, { records, createdAt }]) => ({
      name,
      createdAt,
      updatedAt: createdAt,
      entries: records.size,
      dataSize: 0,
      fileSize: 0,
      lastBuildTimeS: 0,
      numberOfPendingTasks: 0,
      pendingTask: false,
    }))
    return { items, nbPages: 1 }
  }

  /** What was never set is not listed here, other than in the service. */
  #settings(name: string): object {
    return { paginationLimitedTo: 1_000, ...this.#index(name).settings }
  }

  /** Also of an index that is gone: deleting it was a task, too. */
  #task(id: number): object {
    const published = this.application.isPublished(id)
    return { status: published ? 'published' : 'notPublished', pendingTask: !published }
  }

  /** All of it or nothing. */
  #batch(name: string, params: Record<string, unknown>): object {
    const { requests } = params as { requests?: readonly BatchRequest[] }
    if (!Array.isArray(requests)) throw new Refused(400, 'Missing mandatory attribute `requests`')
    for (const [position, { body }] of requests.entries()) this.#checkRecord(body, position)
    if (this.application.pendingTasks >= this.pendingMax) throw new Refused(429, 'Too many jobs')
    const known = this.application.indices.get(name)?.records
    const made = requests.filter(({ action, body }: BatchRequest) => {
      return action !== 'deleteObject' && !known?.has(body.objectID as string)
    })
    if (this.application.recordCount + made.length > this.recordsMax) {
      throw new Refused(403, quotaSays)
    }
    const objectIDs = requests.map(({ body }: BatchRequest) => body.objectID)
    return { taskID: this.application.batch(name, requests), objectIDs }
  }

  #checkRecord(body: BatchRequest['body'], position: number): void {
    const { objectID } = body
    if (typeof objectID !== 'string' || objectID === '') {
      throw new Refused(400, `Record at the position ${position} has no objectID`, { position })
    }
    const size = Buffer.byteLength(JSON.stringify(body))
    if (size <= this.recordBytesMax) return
    const says = `Record at the position ${position} objectID=${objectID} is too big size=${size}/${this.recordBytesMax} bytes.`
    throw new Refused(400, says, { position, objectID })
  }

  #object(name: string, id: string): object {
    const { records, settings } = this.#index(name)
    const record = records.get(id)
    if (record === undefined) throw new Refused(404, 'ObjectID does not exist')
    return retrieved(record, settings)
  }

  #objects({ requests }: { requests?: unknown }): object {
    const list = (requests ?? []) as readonly { indexName: string; objectID: string }[]
    const results = list.map(({ indexName, objectID }) => {
      const { records, settings } = this.#index(indexName)
      const record = records.get(objectID)
      return record === undefined ? null : retrieved(record, settings)
    })
    return { results }
  }

  #queries({ requests }: { requests?: unknown }): object {
    const list = (requests ?? []) as readonly ({ indexName: string } & SearchParams)[]
    return { results: list.map((one) => this.#query(one)) }
  }

  #query({ indexName, ...params }: { indexName: string } & SearchParams): object {
    const { records, settings } = this.#index(indexName)
    if ((params.hitsPerPage ?? 0) > 1_000 || (params.length ?? 0) > 1_000) {
      throw new Refused(400, 'hitsPerPage: Expecting an integer between 0 and 1000')
    }
    return search(indexName, records.values(), settings, params)
  }

  /** The cursor holds where to go on and what was asked. */
  #browse(name: string, given: Record<string, unknown>): object {
    const { records, settings } = this.#index(name)
    const resumed = typeof given.cursor === 'string' ? fromCursor(given.cursor) : undefined
    const { from, params } = resumed ?? { from: 0, params: given as SearchParams }
    const all = browse(records.values(), settings, params)
    const to = from + (params.hitsPerPage ?? 1_000)
    const more = to < all.length && { cursor: toCursor(to, params) }
    return { hits: all.slice(from, to), nbHits: all.length, ...more, params: '', query: '' }
  }

  #deleteBy(name: string, params: Record<string, unknown>): object {
    if (Object.keys(params).length === 0) {
      throw new Refused(400, 'DeleteByQuery endpoint needs at least one filter')
    }
    this.#index(name)
    return this.#accepted(this.application.deleteBy(name, params))
  }

  #operation(name: string, params: Record<string, unknown>): object {
    const { operation, destination, scope } = params as {
      operation: string
      destination: string
      scope?: readonly string[]
    }
    return this.#accepted(this.application.operation(name, operation, destination, scope))
  }
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  const plain = request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes
  if (plain.length === 0) return undefined
  try {
    return JSON.parse(plain.toString('utf8'))
  } catch {
    return undefined
  }
}

function answer(response: ServerResponse, status: number, body: object): void {
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, {
    'content-type': 'application/json; charset=UTF-8',
    'content-length': bytes.length,
  })
  response.end(bytes)
}

const toCursor = (from: number, params: SearchParams) =>
  Buffer.from(JSON.stringify({ from, params })).toString('base64url')

function fromCursor(cursor: string): { from: number; params: SearchParams } {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
  } catch {
    throw new Refused(400, 'Invalid cursor')
  }
}
