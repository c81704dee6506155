/** The routes of the double of Meilisearch, with the checks of their parameters. */
import type { DoubleRequest } from './double.ts'
import { type Body, bodyOf, checkUid, documentsIn, fromQuery, jsonOf, listIn, refuseUnknown } from './double-payload.ts'
import type { Queue, Task } from './double-queue.ts'
import { fetchFrom, only, searchIn } from './double-reading.ts'
import { isKnownSetting, Refusal, type Settings, type Store, type Work } from './double-store.ts'

export interface Answer {
  readonly status: number
  readonly json?: unknown
  readonly text?: string
  readonly headers?: Record<string, string>
}

type Handler = (request: DoubleRequest, ...parts: string[]) => Answer

const ok = (json: unknown): Answer => ({ status: 200, json })

export class Routes {
  readonly #store: Store
  readonly #queue: Queue
  readonly #version: string
  readonly #table: readonly (readonly [string, RegExp, Handler])[]

  constructor(store: Store, queue: Queue, version: string) {
    this.#store = store
    this.#queue = queue
    this.#version = version
    const index = '/indexes/([^/]+)'
    const documents = `${index}/documents`
    this.#table = [
      this.#route('GET', '/health', () => ok({ status: 'available' })),
      this.#route('GET', '/version', () => ok({ commitSha: 'double', commitDate: '', pkgVersion: version })),
      this.#route('GET', '/indexes', (request) => this.#list(request)),
      this.#route('POST', '/indexes', (request) => this.#create(request)),
      this.#route('GET', index, (_, uid) => ok(this.#view(uid))),
      this.#route('DELETE', index, (_, uid) => this.#enqueue(uid, { type: 'indexDeletion' })),
      this.#route('GET', `${index}/stats`, (_, uid) => this.#stats(uid)),
      this.#route('GET', `${index}/settings`, (_, uid) => ok(this.#store.get(uid).settings)),
      this.#route('PATCH', `${index}/settings`, (request, uid) => this.#set(request, uid)),
      this.#route('DELETE', `${index}/settings`, (_, uid) =>
        this.#enqueue(uid, { type: 'settingsUpdate', settings: null }),
      ),
      this.#route('POST', documents, (request, uid) => this.#add(request, uid, false)),
      this.#route('PUT', documents, (request, uid) => this.#add(request, uid, true)),
      this.#route('DELETE', documents, (_, uid) => this.#enqueue(uid, { type: 'documentDeletion', ids: undefined })),
      this.#route('POST', `${documents}/delete-batch`, (request, uid) => this.#deleteBatch(request, uid)),
      this.#route('POST', `${documents}/delete`, (request, uid) => this.#deleteByFilter(request, uid)),
      this.#route('POST', `${documents}/fetch`, (request, uid) => this.#fetch(uid, bodyOf(request))),
      this.#route('GET', documents, (request, uid) => this.#fetch(uid, fromQuery(request.query))),
      this.#route('GET', `${documents}/([^/]+)`, (_, uid, id) => this.#document(uid, id)),
      this.#route('POST', `${index}/search`, (request, uid) =>
        ok(searchIn(this.#store.get(uid), uid, bodyOf(request))),
      ),
      this.#route('POST', '/multi-search', (request) => this.#multiSearch(bodyOf(request))),
      this.#route('POST', '/swap-indexes', (request) => this.#swap(request)),
      this.#route('GET', '/tasks', ({ query }) => this.#tasks(query)),
      this.#route('GET', '/tasks/([0-9]+)', (_, uid) => this.#task(uid)),
      this.#route('POST', '/tasks/cancel', ({ query }) => this.#cancel(query)),
    ]
  }

  #route(method: string, path: string, handler: (request: DoubleRequest, one: string, two: string) => Answer) {
    return [method, new RegExp(`^${path}$`), handler as Handler] as const
  }

  answer(request: DoubleRequest): Answer {
    for (const [method, path, handler] of this.#table) {
      const match = method === request.method ? path.exec(request.path) : null
      if (match !== null) return handler(request, ...match.slice(1).map(decodeURIComponent))
    }
    return { status: 404 }
  }

  #since(version: string): boolean {
    const [major = 0, minor = 0] = this.#version.split('.').map(Number)
    const [wantedMajor = 0, wantedMinor = 0] = version.split('.').map(Number)
    return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)
  }

  #enqueue(indexUid: string | null, work: Work, metadata?: string | null): Answer {
    if (indexUid !== null) checkUid(indexUid)
    const task = this.#queue.add(indexUid, work, metadata ?? undefined)
    const { uid: taskUid, status, type, enqueuedAt } = task
    return { status: 202, json: { taskUid, indexUid, status, type, enqueuedAt } }
  }

  #view(uid: string) {
    const { primaryKey, createdAt, updatedAt } = this.#store.get(uid)
    return { uid, createdAt, updatedAt, primaryKey }
  }

  /** Servers before 1.12 may fail once while an index is being taken away. */
  #list({ query }: DoubleRequest): Answer {
    const dropped = this.#store.takeDropped()
    if (dropped && !this.#since('1.12')) throw new Refusal(500, 'internal', 'No such file or directory', 'internal')
    const { offset, limit } = paging(query, { offset: 0, limit: 20 })
    const all = this.#store.uids()
    const results = all.slice(offset, offset + limit).map((uid) => this.#view(uid))
    return ok({ results, offset, limit, total: all.length })
  }

  #create(request: DoubleRequest): Answer {
    const body = bodyOf(request)
    refuseUnknown(body, ['uid', 'primaryKey'])
    if (typeof body.uid !== 'string') {
      throw new Refusal(400, 'missing_index_uid', 'Missing field `uid`')
    }
    const primaryKey = typeof body.primaryKey === 'string' ? body.primaryKey : null
    return this.#enqueue(body.uid, { type: 'indexCreation', primaryKey })
  }

  #stats(uid: string): Answer {
    const { documents } = this.#store.get(uid)
    const isIndexing = this.#queue.tasks.some((task) => task.indexUid === uid && task.status === 'processing')
    return ok({ numberOfDocuments: documents.size, isIndexing, fieldDistribution: {} })
  }

  #set(request: DoubleRequest, uid: string): Answer {
    const settings = bodyOf(request)
    for (const name of Object.keys(settings)) {
      if (!isKnownSetting(name)) throw new Refusal(400, 'bad_request', `Unknown field \`${name}\``)
    }
    return this.#enqueue(uid, { type: 'settingsUpdate', settings: settings as Settings })
  }

  #add({ query, headers, body }: DoubleRequest, uid: string, merge: boolean): Answer {
    this.#checkParameters(query, ['primaryKey', 'csvDelimiter'])
    const documents = documentsIn(headers['content-type'], body, this.#since('1.12'))
    const primaryKey = query.get('primaryKey') ?? undefined
    const work: Work = { type: 'documentAdditionOrUpdate', merge, documents, primaryKey }
    return this.#enqueue(uid, work, query.get('customMetadata'))
  }

  #deleteBatch(request: DoubleRequest, uid: string): Answer {
    this.#checkParameters(request.query, [])
    const ids = jsonOf(request) as unknown
    if (!Array.isArray(ids) || !ids.every((id) => ['string', 'number'].includes(typeof id))) {
      throw new Refusal(400, 'bad_request', 'Invalid value type: expected an array of identifiers')
    }
    return this.#enqueue(uid, { type: 'documentDeletion', ids }, request.query.get('customMetadata'))
  }

  #deleteByFilter(request: DoubleRequest, uid: string): Answer {
    const { filter } = bodyOf(request)
    if (filter === undefined) throw new Refusal(400, 'missing_document_filter', 'Missing field `filter`')
    return this.#enqueue(uid, { type: 'documentDeletion', ids: undefined, filter })
  }

  #checkParameters(query: URLSearchParams, known: readonly string[]): void {
    const all = [...known, ...(this.#since('1.26') ? ['customMetadata', 'skipCreation'] : [])]
    for (const name of query.keys()) {
      if (all.includes(name)) continue
      const says = `Unknown parameter \`${name}\`: expected one of \`${all.join('`, `')}\``
      throw new Refusal(400, 'bad_request', says)
    }
  }

  #fetch(uid: string, body: Body): Answer {
    return ok(fetchFrom(this.#store.get(uid), uid, body, (version) => this.#since(version)))
  }

  #document(uid: string, id: string): Answer {
    const document = this.#store.get(uid).documents.get(id)
    if (document !== undefined) return ok(only(document))
    throw new Refusal(404, 'document_not_found', `Document \`${id}\` not found.`)
  }

  #multiSearch({ queries, federation }: Body): Answer {
    if (federation !== undefined) throw new Refusal(400, 'bad_request', 'the double knows no federation')
    if (!Array.isArray(queries)) throw new Refusal(400, 'bad_request', 'Missing field `queries`')
    const results = queries.map(({ indexUid, ...query }: Body, at) => {
      try {
        return { indexUid, ...searchIn(this.#store.get(String(indexUid)), String(indexUid), query) }
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        const { status, body } = error
        throw new Refusal(status, body.code, `Inside \`.queries[${at}]\`: ${body.message}`, body.type)
      }
    })
    return ok({ results })
  }

  #swap(request: DoubleRequest): Answer {
    const body = jsonOf(request)
    if (!Array.isArray(body)) throw new Refusal(400, 'bad_request', 'Invalid value type: expected an array')
    const swaps = body.map(({ indexes }: { indexes?: unknown }) => {
      if (!Array.isArray(indexes) || indexes.length !== 2) {
        throw new Refusal(400, 'invalid_swap_indexes', 'Two indexes must be given for each swap.')
      }
      return indexes.map(String) as unknown as readonly [string, string]
    })
    const uids = swaps.flat()
    if (new Set(uids).size < uids.length) {
      throw new Refusal(400, 'invalid_swap_duplicate_index_found', 'Indexes must be declared only once during a swap.')
    }
    return this.#enqueue(null, { type: 'indexSwap', swaps })
  }

  #task(uid: string): Answer {
    const task = this.#queue.tasks[Number(uid)]
    if (task !== undefined) return ok(this.#shown(task))
    throw new Refusal(404, 'task_not_found', `Task \`${uid}\` not found.`)
  }

  /** Batches are known from 1.12 on. */
  #shown(task: Task): object {
    const { batchUid, ...rest } = task
    return this.#since('1.12') ? { batchUid, ...rest } : rest
  }

  #tasks(query: URLSearchParams): Answer {
    if (query.has('batchUids') && !this.#since('1.12')) {
      throw new Refusal(400, 'bad_request', 'Unknown parameter `batchUids`')
    }
    const limit = Number(query.get('limit') ?? 20)
    const found = this.#queue.tasks.filter((task) => fits(task, query))
    const sorted = query.get('reverse') === 'true' ? found : found.toReversed()
    const from = query.get('from')
    const rest = from === null ? sorted : sorted.filter(({ uid }) => uid <= Number(from))
    const results = rest.slice(0, limit)
    return ok({
      results: results.map((task) => this.#shown(task)),
      total: found.length,
      limit,
      from: results[0]?.uid ?? null,
      next: rest[limit]?.uid ?? null,
    })
  }

  #cancel(query: URLSearchParams): Answer {
    const uids = listIn(query, 'uids').map(Number)
    if (uids.length === 0)
      throw new Refusal(400, 'missing_task_filters', 'Query parameters to filter the tasks to cancel are missing.')
    this.#queue.cancel(uids)
    const { uid: taskUid, type, enqueuedAt } = this.#queue.tasks.at(-1) as Task
    return { status: 200, json: { taskUid, indexUid: null, status: 'enqueued', type, enqueuedAt } }
  }
}

function fits(task: Task, query: URLSearchParams): boolean {
  const among = (name: string, value: unknown) => {
    const wanted = listIn(query, name)
    return wanted.length === 0 || wanted.includes('*') || wanted.includes(String(value))
  }
  const after = query.get('afterEnqueuedAt')
  const before = query.get('beforeEnqueuedAt')
  return (
    among('uids', task.uid) &&
    among('batchUids', task.batchUid) &&
    among('statuses', task.status) &&
    among('types', task.type) &&
    among('indexUids', task.indexUid) &&
    (after === null || task.enqueuedAt > after) &&
    (before === null || task.enqueuedAt < before)
  )
}

function paging(query: URLSearchParams, { offset, limit }: { offset: number; limit: number }) {
  return {
    offset: Number(query.get('offset') ?? offset),
    limit: Number(query.get('limit') ?? limit),
  }
}
