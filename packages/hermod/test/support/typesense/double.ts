// A double of Typesense, not the real thing: a loopback server made from the public documentation of
// server 30.x. Collections with schema and metadata, aliases, imports with a line for each document,
// deletion by filter, multi_search, export, health, debug, and faults on demand.
//
// It does not do: ranking as Typesense ranks (fewer errors, then the heaviest field), all of the
// stemmer, max_candidates, drop_tokens, split_join_tokens, infix, grouping, synonyms, curation,
// vectors, joins, nested fields, filters with || or parentheses, scoped keys, and clusters.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DoubleCollection } from './double-collections.ts'
import { Refused } from './double-filters.ts'
import { searchDouble } from './double-search.ts'

export interface DoubleRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly body: string
}

/** What happens instead of, or after, the right answer. */
export interface Fault {
  readonly when: (request: DoubleRequest) => boolean
  /** Once when left out. */
  readonly times?: number
  /** Answered instead of doing anything. */
  readonly status?: number
  readonly message?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly text?: string
  /** Done, and then no answer: the connection stays open until the client gives up. */
  readonly silence?: boolean
  /** Done, and then the answer is cut in the middle. */
  readonly cut?: boolean
  /** Done, and the answer of an import has only so many lines. */
  readonly lines?: number
  /** Waits before it does anything. */
  readonly afterMs?: number
  /** Every second document of an import is refused, not written. */
  readonly refuseEverySecond?: string
}

interface Answer {
  readonly status: number
  readonly text: string
  readonly type?: string
}

const json = (value: unknown, status = 200): Answer => ({ status, text: JSON.stringify(value) })
const message = (status: number, says: string) => json({ message: says }, status)
const NOT_FOUND = 'Not Found'

export class TypesenseDouble {
  readonly apiKey = 'double-secret-key'
  readonly requests: DoubleRequest[] = []
  readonly faults: Fault[] = []
  /** 503 to everything but /health, as while a node catches up. */
  lagging = false
  /** `OUT_OF_DISK` or `OUT_OF_MEMORY`: writes are rejected. */
  outOf: string | undefined
  readonly #collections = new Map<string, DoubleCollection>()
  readonly #aliases = new Map<string, string>()
  readonly #used = new Map<Fault, number>()
  #server: Server | undefined
  #port = 0

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Again on the same port after `close()`. */
  async open(): Promise<this> {
    const server = createServer((request, response) => void this.#serve(request, response))
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve))
    this.#server = server
    this.#port = (server.address() as AddressInfo).port
    return this
  }

  async close(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }

  /** As an operator would, behind the engine's back. */
  dropAll(): void {
    this.#collections.clear()
    this.#aliases.clear()
  }

  collection(name: string): DoubleCollection {
    return this.#find(name)
  }

  names(): string[] {
    return [...this.#collections.keys()]
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(incoming.url ?? '/', this.url)
    const request: DoubleRequest = {
      method: incoming.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      body: await bodyOf(incoming),
    }
    this.requests.push(request)
    const fault = this.#take(request)
    if (fault?.afterMs !== undefined) {
      await new Promise((resolve) => setTimeout(resolve, fault.afterMs))
    }
    if (fault?.status !== undefined) {
      const text = fault.text ?? JSON.stringify({ message: fault.message ?? 'told to fail' })
      return send(response, { status: fault.status, text }, fault)
    }
    const key = incoming.headers['x-typesense-api-key'] ?? url.searchParams.get('x-typesense-api-key')
    const answer = this.#answer(request, key === this.apiKey, fault)
    if (fault?.silence) return
    send(response, answer, fault)
  }

  #take(request: DoubleRequest): Fault | undefined {
    const fault = this.faults.find((one) => (this.#used.get(one) ?? 0) < (one.times ?? 1) && one.when(request))
    if (fault !== undefined) this.#used.set(fault, (this.#used.get(fault) ?? 0) + 1)
    return fault
  }

  #answer(request: DoubleRequest, allowed: boolean, fault: Fault | undefined): Answer {
    if (request.path === '/health') {
      return this.outOf === undefined ? json({ ok: true }) : json({ ok: false, resource_error: this.outOf }, 503)
    }
    if (!allowed) {
      const says = 'Forbidden - a valid `x-typesense-api-key` header must be sent.'
      return message(401, says)
    }
    if (this.lagging) return message(503, 'Not Ready or Lagging')
    if (this.outOf !== undefined && isWrite(request)) {
      return message(422, `Rejecting write: running out of resource type: ${this.outOf}`)
    }
    try {
      return this.#route(request, fault)
    } catch (error) {
      if (error instanceof Refused) return message(error.status, error.message)
      throw error
    }
  }

  #route(request: DoubleRequest, fault: Fault | undefined): Answer {
    const { method, path } = request
    const [root, name, documents, last] = path.slice(1).split('/').map(decodeURIComponent)
    if (path === '/debug') return json({ state: 1, version: '30.2' })
    if (path === '/multi_search' && method === 'POST') return this.#multiSearch(request)
    if (root === 'aliases') return this.#alias(request, name)
    if (root !== 'collections') return message(404, NOT_FOUND)
    if (name === undefined) return this.#all(request)
    const collection = this.#find(name)
    if (documents === undefined) return this.#one(request, collection)
    if (last === 'import') return importInto(request, collection, fault)
    if (last === 'export') return exportOf(request, collection)
    if (last === 'search') return json(this.#search(collection, Object.fromEntries(request.query)))
    if (last === undefined) return documentsOf(request, collection)
    return documentOf(request, collection, last)
  }

  #has(name: string): boolean {
    return this.#collections.has(this.#aliases.get(name) ?? name)
  }

  #find(name: string): DoubleCollection {
    const found = this.#collections.get(this.#aliases.get(name) ?? name)
    if (found === undefined) throw new Refused(404, NOT_FOUND)
    return found
  }

  #all({ method, query, body }: DoubleRequest): Answer {
    if (method === 'GET') {
      const withFields = !query.get('exclude_fields')?.split(',').includes('fields')
      const newestFirst = [...this.#collections.values()].reverse()
      return json(newestFirst.map((one) => one.summary(withFields)))
    }
    const schema = parse(body)
    const { name } = schema as { name?: string }
    if (this.#collections.has(String(name))) {
      return message(409, `A collection with name \`${name}\` already exists.`)
    }
    const made = new DoubleCollection(schema)
    this.#collections.set(made.name, made)
    return json(made.summary(true), 201)
  }

  #one({ method, body }: DoubleRequest, collection: DoubleCollection): Answer {
    const summary = collection.summary(true)
    if (method === 'DELETE') this.#collections.delete(collection.name)
    if (method === 'PATCH') {
      const { metadata, fields } = parse(body)
      if (fields !== undefined || metadata === undefined) {
        throw new Refused(400, 'The double changes nothing but `metadata`.')
      }
      collection.setMetadata(metadata)
      return json({ metadata })
    }
    return json(summary)
  }

  #alias({ method, body }: DoubleRequest, name: string | undefined): Answer {
    const told = ([alias, collection]: [string, string]) => ({
      name: alias,
      collection_name: collection,
    })
    if (name === undefined) return json({ aliases: [...this.#aliases].map(told) })
    if (method === 'PUT') {
      if (this.#collections.has(name)) {
        throw new Refused(500, `Name \`${name}\` conflicts with an existing collection name.`)
      }
      const { collection_name: collection } = parse(body)
      if (typeof collection !== 'string') {
        throw new Refused(400, 'Parameter `collection_name` is required.')
      }
      this.#aliases.set(name, collection)
    }
    const collection = this.#aliases.get(name)
    if (collection === undefined) return message(404, NOT_FOUND)
    if (method === 'DELETE') this.#aliases.delete(name)
    return json(told([name, collection]))
  }

  #multiSearch({ body }: DoubleRequest): Answer {
    const { searches } = parse(body) as { searches?: Record<string, unknown>[] }
    if (!Array.isArray(searches)) throw new Refused(400, 'Missing `searches` array.')
    if (searches.length > 50) throw new Refused(400, 'Number of multi searches exceeds `50`.')
    const results = searches.map((one) => {
      if (!this.#has(String(one.collection))) return { code: 404, error: 'Collection not found' }
      try {
        return this.#search(this.#find(String(one.collection)), one)
      } catch (error) {
        if (error instanceof Refused) return { code: error.status, error: error.message }
        throw error
      }
    })
    return json({ results })
  }

  #search(collection: DoubleCollection, parameters: Record<string, unknown>): object {
    return searchDouble(collection, parameters)
  }
}

function isWrite({ method, path }: DoubleRequest): boolean {
  return method !== 'GET' && path !== '/multi_search'
}

function parse(body: string): Record<string, unknown> {
  try {
    return JSON.parse(body)
  } catch {
    throw new Refused(400, 'Bad JSON.')
  }
}

function importInto({ query, body }: DoubleRequest, collection: DoubleCollection, fault: Fault | undefined): Answer {
  const options = {
    action: query.get('action') ?? 'create',
    dirtyValues: query.get('dirty_values') ?? 'reject',
    returnId: query.get('return_id') === 'true',
  }
  const lines = body.split('\n').filter((line) => line.trim() !== '')
  const answers = lines.map((line, at) => {
    const refused = fault?.refuseEverySecond !== undefined && at % 2 === 1
    if (!refused) return JSON.stringify(collection.import(line, options))
    const error = fault?.refuseEverySecond
    return JSON.stringify({ code: 400, document: line, error, success: false })
  })
  const kept = answers.slice(0, fault?.lines ?? answers.length)
  return { status: 200, text: kept.join('\n'), type: 'text/plain; charset=utf8' }
}

function exportOf({ query }: DoubleRequest, collection: DoubleCollection): Answer {
  return { status: 200, text: collection.export(query.get('filter_by') ?? ''), type: 'text/plain' }
}

function documentsOf({ method, query, body }: DoubleRequest, collection: DoubleCollection): Answer {
  if (method === 'DELETE') {
    if (query.get('truncate') === 'true') {
      const { size } = collection.rows
      collection.rows.clear()
      return json({ num_deleted: size })
    }
    const filter = query.get('filter_by')
    if (filter === null) throw new Refused(400, 'Parameter `filter_by` must be provided.')
    return json({ num_deleted: collection.deleteBy(filter).length })
  }
  const action = query.get('action') ?? 'create'
  const options = { action, dirtyValues: query.get('dirty_values') ?? 'reject', returnId: true }
  const answer = collection.import(body, options) as { id: string; code: number; error: string }
  if (answer.error !== undefined) return message(answer.code, answer.error)
  return json(collection.rows.get(answer.id)?.document, 201)
}

function documentOf({ method, query }: DoubleRequest, collection: DoubleCollection, id: string): Answer {
  const row = collection.rows.get(id)
  if (row === undefined) {
    if (method === 'DELETE' && query.get('ignore_not_found') === 'true') return json({ id })
    return message(404, `Could not find a document with id: ${id}`)
  }
  if (method === 'DELETE') collection.rows.delete(id)
  return json(row.document)
}

function send(response: ServerResponse, answer: Answer, fault: Fault | undefined): void {
  const { status, text, type = 'application/json; charset=utf-8' } = answer
  const bytes = Buffer.from(text)
  const headers = { 'content-type': type, 'content-length': bytes.length, ...fault?.headers }
  response.writeHead(status, headers)
  if (!fault?.cut) {
    response.end(bytes)
    return
  }
  response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => response.destroy())
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
