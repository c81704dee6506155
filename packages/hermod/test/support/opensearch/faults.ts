// A proxy in front of a real OpenSearch node that spoils the first so many bulks, each in one way:
// before the node heard of it, or after it did all of it or half of it.

import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Fault =
  | { readonly status: number; readonly type: string; readonly retryAfter?: string }
  | 'cut-before'
  | 'cut-after'
  | 'mute-after'
  | 'html'
  | 'half-refused'

export class OpenSearchFaults {
  readonly #target: string
  readonly #server: http.Server
  #port = 0
  fault: Fault | undefined
  times = 0
  /** Every call is refused with 401 while it is set. */
  locked = false

  constructor(target: string) {
    this.#target = target
    this.#server = http.createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy())
    })
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  async start(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    if (this.locked) return refuse(response, { status: 401, type: 'security_exception' })
    const spoiled = /\/_bulk\?/.test(request.url ?? '') && this.times-- > 0
    if (!spoiled || this.fault === undefined) return this.#forward(request, response, body)
    await this.#spoil(this.fault, request, response, body)
  }

  async #spoil(fault: Fault, request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
    if (typeof fault === 'object') return refuse(response, fault)
    if (fault === 'half-refused') return this.#half(request, response, body)
    if (fault === 'html') return void response.end('<html>Please log in</html>')
    if (fault !== 'cut-before') await this.#ask(request, body)
    if (fault !== 'mute-after') response.destroy()
  }

  /** The node hears every second document; of the others it says that it has no room. */
  async #half(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
    const pairs = body.toString().match(/\{"index".*\n.*\n|\{"delete".*\n/g) ?? []
    const heard = pairs.filter((_, at) => at % 2 === 0)
    const answer = await this.#ask(request, Buffer.from(heard.join('')))
    const { items } = JSON.parse(answer.text) as { items: unknown[] }
    const error = { type: 'es_rejected_execution_exception', reason: 'rejected execution' }
    const all = pairs.map((pair, at) => {
      const [action = '', { _id } = { _id: '' }] =
        Object.entries<{ _id: string }>(JSON.parse(pair.split('\n')[0] as string))[0] ?? []
      return at % 2 === 0 ? items[at / 2] : { [action]: { _id, status: 429, error } }
    })
    response.end(JSON.stringify({ items: all }))
  }

  async #forward(request: IncomingMessage, response: ServerResponse, body: Buffer) {
    const { status, text } = await this.#ask(request, body)
    response.writeHead(status).end(text)
  }

  async #ask({ method = 'GET', url, headers }: IncomingMessage, body: Buffer) {
    const type = headers['content-type']
    const answer = await fetch(`${this.#target}${url}`, {
      method,
      ...(body.length > 0 && { body }),
      headers: type === undefined ? {} : { 'content-type': type },
    })
    return { status: answer.status, text: await answer.text() }
  }
}

function refuse(response: ServerResponse, fault: Exclude<Fault, string>): void {
  const { status, type, retryAfter } = fault
  response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter })
  response.end(JSON.stringify({ error: { type, reason: 'for the test' }, status }))
}
