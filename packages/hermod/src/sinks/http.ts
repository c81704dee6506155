/**
 * The one HTTP client of the sinks: keep-alive, a limit on everything, no redirects, no retries. Any
 * status is an answer; what it throws names the stage and never a secret.
 */
import http, { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import https from 'node:https'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { type Rule, rule } from '../check-options.ts'

export interface HttpOptions {
  /** Scheme, host, port, and a path that every request begins with. */
  readonly url: string
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  /** From the first byte to the last of the answer; 30 s when left out. */
  readonly timeoutMs?: number
  /** Until a new connection is there, TLS included; 5 s when left out. */
  readonly connectMs?: number
  /** Bodies of this size and more are compressed; never when left out. */
  readonly gzipFromBytes?: number
  /** 64 MiB when left out. */
  readonly answerBytesMax?: number
  /** What must appear in no message. */
  readonly secrets?: readonly string[]
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD'
  /** Begins with `/`; parts that come from data are encoded by the caller. */
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  /** An object is sent as JSON. */
  readonly body?: string | Buffer | object
  readonly contentType?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** Throws when the answer is something else. */
  json(): unknown
}

export class HttpError extends Error {
  /** Node's code, or `HTTP_CONNECT_TIMEOUT`, `HTTP_TIMEOUT`, `HTTP_ANSWER_…`, `ABORT_ERR`. */
  readonly code: string
  /** The whole request had been written: it may have had its effect. */
  readonly sent: boolean

  constructor(code: string, message: string, sent: boolean) {
    super(message)
    this.name = code === 'ABORT_ERR' ? 'AbortError' : 'HttpError'
    this.code = code
    this.sent = sent
  }
}

const answerBytesMaxDefault = 64 * 1024 * 1024
/** Less than 5 s, after which Node and many other servers close an idle connection. */
const idleMs = 4_000
const secretCharsMin = 4
const compress = promisify(gzip)
const decompress = promisify(gunzip)

export class HttpClient {
  readonly #options: HttpOptions
  readonly #url: URL
  readonly #prefix: string
  readonly #headers: Record<string, string>
  readonly #agent: http.Agent
  readonly #secrets: readonly string[]

  constructor(options: HttpOptions) {
    this.#options = options
    this.#url = new URL(options.url)
    this.#prefix = this.#url.pathname.replace(/\/+$/, '')
    const { username, password, protocol } = this.#url
    const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    const basic = Buffer.from(login).toString('base64')
    this.#headers = {
      ...(username !== '' && { authorization: `Basic ${basic}` }),
      ...(options.gzipFromBytes !== undefined && { 'accept-encoding': 'gzip' }),
      ...options.headers,
    }
    this.#secrets = [...(options.secrets ?? []), password, decodeURIComponent(password), basic]
      .filter((one) => one.length >= secretCharsMin)
      .sort((a, b) => b.length - a.length)
    const agent = { keepAlive: true, maxSockets: 64, timeout: idleMs, scheduling: 'lifo' } as const
    this.#agent = protocol === 'https:' ? new https.Agent(agent) : new http.Agent(agent)
  }

  /** Throws HttpError for the network, timeouts and abort only. */
  async request(request: HttpRequest): Promise<HttpAnswer> {
    const body = await this.#encode(request)
    const { timeoutMs = 30_000, connectMs = 5_000 } = this.#options
    const { answerBytesMax = answerBytesMaxDefault } = this.#options
    const limits = { timeoutMs, connectMs, answerBytesMax, signal: request.signal }
    try {
      const { response, bytes } = await exchange(() => this.#start(request, body), body, limits)
      return this.#answer(response, await this.#decode(response, bytes, answerBytesMax))
    } catch (error) {
      throw this.#discreet(error)
    }
  }

  /** Idle connections end; running requests are not waited for. */
  async close(): Promise<void> {
    this.#agent.destroy()
  }

  /** The text without any of the secrets. */
  mask(text: string): string {
    return this.#secrets.reduce((masked, one) => masked.replaceAll(one, '•••'), text)
  }

  async #encode({ body }: HttpRequest): Promise<{ bytes: Buffer | undefined; zipped: boolean }> {
    if (body === undefined) return { bytes: undefined, zipped: false }
    const plain = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
    const { gzipFromBytes = Number.POSITIVE_INFINITY } = this.#options
    if (plain.length < gzipFromBytes) return { bytes: plain, zipped: false }
    return { bytes: await compress(plain, { level: 1 }), zipped: true }
  }

  #start(request: HttpRequest, { bytes, zipped }: Body): ClientRequest {
    const { method, body, contentType } = request
    const ofBody = typeof body === 'string' || Buffer.isBuffer(body) ? undefined : JSON_TYPE
    const type = body === undefined ? undefined : (contentType ?? ofBody)
    const { request: send } = this.#url.protocol === 'https:' ? https : http
    return send({
      protocol: this.#url.protocol,
      agent: this.#agent,
      method,
      hostname: this.#url.hostname.replace(/^\[|\]$/g, ''),
      ...(this.#url.port !== '' && { port: this.#url.port }),
      path: this.#prefix + request.path + queryOf(request.query),
      headers: {
        ...this.#headers,
        ...(type !== undefined && { 'content-type': type }),
        ...(zipped && { 'content-encoding': 'gzip' }),
        ...(bytes !== undefined || !BODILESS.has(method) ? { 'content-length': String(bytes?.length ?? 0) } : {}),
        ...request.headers,
      },
    })
  }

  async #decode(response: IncomingMessage, bytes: Buffer, bytesMax: number): Promise<string> {
    if (response.headers['content-encoding'] !== 'gzip' || bytes.length === 0) {
      return bytes.toString('utf8')
    }
    try {
      return (await decompress(bytes, { maxOutputLength: bytesMax })).toString('utf8')
    } catch (error) {
      throw new HttpError('HTTP_ANSWER_FOREIGN', `the answer cannot be read: ${error}`, true)
    }
  }

  /** What a server says of a failure may repeat the key it was given. */
  #answer({ statusCode = 0, headers }: IncomingMessage, given: string): HttpAnswer {
    const text = statusCode >= 400 ? this.mask(given) : given
    return {
      status: statusCode,
      headers,
      text,
      json() {
        try {
          return JSON.parse(text)
        } catch {
          const says = `HTTP ${statusCode} with ${text === '' ? 'no answer' : 'an answer that is not JSON'}`
          throw new HttpError('HTTP_ANSWER_FOREIGN', says, true)
        }
      },
    }
  }

  #discreet(error: unknown): HttpError {
    if (error instanceof HttpError) return error
    const { code, message, sent } = error as { code?: string; message: string; sent?: boolean }
    return new HttpError(code ?? 'HTTP_FAILED', this.mask(message), sent ?? false)
  }
}

type Body = { readonly bytes: Buffer | undefined; readonly zipped: boolean }

const JSON_TYPE = 'application/json'
const BODILESS = new Set(['GET', 'HEAD'])

function queryOf(query: HttpRequest['query'] = {}): string {
  const params = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined) params.set(key, String(value))
  }
  return params.size === 0 ? '' : `?${params}`
}

interface Limits {
  readonly timeoutMs: number
  readonly connectMs: number
  readonly answerBytesMax: number
  readonly signal: AbortSignal | undefined
}

interface Exchanged {
  readonly response: IncomingMessage
  readonly bytes: Buffer
}

/** One request and its whole answer; whatever ends it early leaves no socket behind. */
function exchange(start: () => ClientRequest, { bytes }: Body, limits: Limits): Promise<Exchanged> {
  const { signal, timeoutMs, connectMs, answerBytesMax } = limits
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(new HttpError('ABORT_ERR', 'the call was ended', false))
    const request = start()
    const sent = () => request.writableFinished
    const end = (code: string, says: string) => {
      fail(new HttpError(code, says, sent()))
      request.destroy()
    }
    const onAbort = () => end('ABORT_ERR', 'the call was ended')
    const whole = setTimeout(() => {
      end('HTTP_TIMEOUT', `no complete answer within ${timeoutMs} ms`)
    }, timeoutMs)
    const settle = () => {
      clearTimeout(whole)
      signal?.removeEventListener('abort', onAbort)
    }
    const fail = (error: Error) => {
      settle()
      reject(error instanceof HttpError ? error : Object.assign(error, { sent: sent() }))
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    limitConnecting(request, connectMs, end)
    request.on('error', fail)
    request.on('response', (response) => {
      collect(response, answerBytesMax, end).then((all) => {
        settle()
        resolve({ response, bytes: all })
      }, fail)
    })
    request.end(bytes)
  })
}

type End = (code: string, says: string) => void

/** A kept-alive connection needs no time to connect. */
function limitConnecting(request: ClientRequest, connectMs: number, end: End): void {
  request.on('socket', (socket) => {
    if (!socket.connecting) return
    const timer = setTimeout(() => {
      end('HTTP_CONNECT_TIMEOUT', `no connection within ${connectMs} ms`)
    }, connectMs)
    const stop = () => clearTimeout(timer)
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', stop)
    socket.once('close', stop)
  })
}

/** An incomplete answer counts as none: Node reports it as ECONNRESET. */
async function collect(response: IncomingMessage, bytesMax: number, end: End): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bytesMax) end('HTTP_ANSWER_TOO_LARGE', `the answer has more than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** For options: never repeated in a message, since it may hold a password. */
export function httpUrl(): Rule<string> {
  return rule((value, field, problems) => {
    const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
    const fits = url !== undefined && /^https?:$/.test(url.protocol) && !url.search && !url.hash
    if (!fits) problems.push({ field, says: 'must be a URL that begins with http:// or https://' })
    return value as string
  })
}
