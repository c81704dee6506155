/**
 * A double of Meilisearch: an HTTP server made from its public documentation, so that the engine can
 * be tested where no Meilisearch can be had. It is not Meilisearch. It keeps everything in memory,
 * looks at one document after the other, and knows neither vectors, geo search, synonyms, distinct
 * values, cropping, languages, federated search, keys with limited rights nor dumps; its relevance
 * follows the ranking rules in order, with simpler sums. What it does, it does as documented: tasks,
 * batches, errors, filters without case, limits. Faults are asked for by the test.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { Queue } from './double-queue.ts'
import { type Answer, Routes } from './double-routes.ts'
import { Refusal, Store } from './double-store.ts'

export interface MeilisearchDoubleOptions {
  /** The master key; none: everybody may do everything. */
  readonly key?: string
  /** What /version says; what came later is refused as the older server would. */
  readonly version?: string
  readonly payloadBytesMax?: number
}

export interface DoubleRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/**
 * cut: the connection ends before anything is done; swallowed: everything is done and no answer comes;
 * mute: everything is done and the connection stays open; half: the answer breaks off; hang: nothing
 * happens; html: what a proxy might say.
 */
export type Fault = 'cut' | 'swallowed' | 'mute' | 'half' | 'hang' | 'html' | Refusal

interface FaultRule {
  readonly when: (request: DoubleRequest) => boolean
  readonly fault: Fault
  times: number
}

export class MeilisearchDouble {
  readonly store = new Store()
  readonly queue: Queue
  readonly requests: DoubleRequest[] = []
  readonly #routes: Routes
  readonly #options: MeilisearchDoubleOptions
  readonly #sockets = new Set<Socket>()
  #server: Server | undefined
  #rules: FaultRule[] = []
  #port = 0
  key: string | undefined

  constructor(options: MeilisearchDoubleOptions = {}) {
    this.#options = options
    this.key = options.key
    const { version = '1.53.0' } = options
    this.queue = new Queue(this.store, !/^1\.(\d|1[01])\./.test(version))
    this.#routes = new Routes(this.store, this.queue, version)
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Again on the same port after stop(). */
  async start(): Promise<this> {
    const server = createServer((request, response) => this.#serve(request, response))
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve))
    this.#port = (server.address() as AddressInfo).port
    this.#server = server
    return this
  }

  /** Connections are cut and refused; what it holds stays, as on a disk. */
  async stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async restart(): Promise<void> {
    await this.stop()
    this.queue.restart()
    await this.start()
  }

  /** The next calls that fit are spoilt; the returned function ends it. */
  spoil(fault: Fault, when: FaultRule['when'] = () => true, times = Number.POSITIVE_INFINITY) {
    const rule: FaultRule = { when, fault, times }
    this.#rules.push(rule)
    return () => {
      this.#rules = this.#rules.filter((one) => one !== rule)
    }
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const request = await read(incoming)
      this.requests.push(request)
      const rule = this.#rules.find(({ when, times }) => times > 0 && when(request))
      if (rule !== undefined) rule.times--
      if (rule?.fault === 'hang') return
      if (rule?.fault === 'cut') return void incoming.socket.destroy()
      if (rule?.fault === 'html') return send(response, { status: 200, text: '<html>hello</html>' })
      const answer = this.#answer(request, rule?.fault)
      if (rule?.fault === 'swallowed') return void incoming.socket.destroy()
      if (rule?.fault === 'mute') return
      send(response, answer, rule?.fault === 'half')
    } catch {
      incoming.socket.destroy()
    }
  }

  #answer(request: DoubleRequest, fault: Fault | undefined): Answer {
    try {
      if (fault instanceof Refusal) throw fault
      if (request.path !== '/health') this.#authorise(request)
      const { payloadBytesMax = 100 * 1024 * 1024 } = this.#options
      if (request.body.length > payloadBytesMax) {
        const says = `The provided payload reached the size limit. The maximum accepted payload size is ${payloadBytesMax} bytes.`
        throw new Refusal(413, 'payload_too_large', says)
      }
      return this.#routes.answer(request)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return { status: error.status, json: error.body, headers: error.headers }
    }
  }

  #authorise({ headers }: DoubleRequest): void {
    if (this.key === undefined) return
    if (headers.authorization === undefined) {
      const says = 'The Authorization header is missing. It must use the bearer authorization method.'
      throw new Refusal(401, 'missing_authorization_header', says, 'auth')
    }
    if (headers.authorization !== `Bearer ${this.key}`) {
      throw new Refusal(403, 'invalid_api_key', 'The provided API key is invalid.', 'auth')
    }
  }
}

async function read(incoming: IncomingMessage): Promise<DoubleRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const raw = Buffer.concat(chunks)
  const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://double')
  const zipped = incoming.headers['content-encoding'] === 'gzip'
  return {
    method: incoming.method ?? 'GET',
    path: pathname,
    query: searchParams,
    headers: incoming.headers,
    body: zipped ? gunzipSync(raw) : raw,
  }
}

function send(response: ServerResponse, { status, json, text, headers }: Answer, half = false): void {
  const body = text ?? (json === undefined ? '' : JSON.stringify(json))
  const type = text === undefined ? 'application/json' : 'text/html'
  response.writeHead(status, {
    ...headers,
    'content-type': type,
    'content-length': Buffer.byteLength(body),
  })
  if (!half) return void response.end(body)
  response.write(body.slice(0, Math.ceil(body.length / 2)), () => response.socket?.destroy())
}

export async function meilisearchDouble(options?: MeilisearchDoubleOptions): Promise<MeilisearchDouble> {
  return new MeilisearchDouble(options).start()
}
