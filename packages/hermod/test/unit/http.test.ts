// The HTTP client of the sinks against a real server that behaves in every way servers do.

import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { HttpClient, type HttpOptions } from '../../src/sinks/http.ts'
import { outcomeOfError } from '../../src/sinks/sink.ts'

type Handler = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void

const secret = 'k3y-of-nobody'
let handle: Handler
let connections = 0
const server = http.createServer(async (request, response) => {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer)
  } catch {
    return
  }
  handle(request, response, Buffer.concat(chunks))
})
server.on('connection', () => connections++)

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const portOf = (of: net.Server) => (of.address() as AddressInfo).port

function client(options: Partial<HttpOptions> = {}): HttpClient {
  const made = new HttpClient({ url: `http://127.0.0.1:${portOf(server)}`, ...options })
  onTestFinished(() => made.close())
  return made
}

const get = { method: 'GET', path: '/' } as const

it('sends path, query, headers and body as they are meant', async () => {
  handle = ({ method, url, headers }, response, body) =>
    response.end(JSON.stringify({ method, url, headers, body: body.toString() }))
  const url = `http://ann:p%40ss@127.0.0.1:${portOf(server)}/base/`
  const { status, json } = await client({ url, headers: { 'x-key': 'k' } }).request({
    method: 'POST',
    path: '/a%2Fb',
    query: { q: 'ä &', n: 1, none: undefined },
    body: { text: 'é' },
  })
  expect(status).toBe(200)
  const seen = json() as Record<string, unknown> & { headers: Record<string, string> }
  expect([seen.method, seen.url, seen.body]).toEqual([...['POST', '/base/a%2Fb?q=%C3%A4+%26&n=1', '{"text":"é"}']])
  expect(seen.headers).toMatchObject({
    'content-type': 'application/json',
    'content-length': '13',
    'x-key': 'k',
    authorization: `Basic ${Buffer.from('ann:p@ss').toString('base64')}`,
  })
  expect(seen.headers['transfer-encoding']).toBeUndefined()
})

it('keeps a connection for the requests that follow', async () => {
  handle = (_, response) => response.end('{}')
  const before = connections
  const one = client()
  for (let round = 0; round < 5; round++) await one.request(get)
  expect(connections - before).toBe(1)
})

it('compresses large bodies, and reads compressed answers', async () => {
  handle = ({ headers }, response, body) => {
    const zipped = headers['content-encoding'] === 'gzip'
    response.setHeader('content-encoding', 'gzip')
    response.end(gzipSync(JSON.stringify([zipped, (zipped ? gunzipSync(body) : body).length])))
  }
  const one = client({ gzipFromBytes: 1_000 })
  const send = async (chars: number) => {
    const answer = await one.request({ method: 'POST', path: '/', body: 'x'.repeat(chars) })
    return answer.json()
  }
  expect(await send(999)).toEqual([false, 999])
  expect(await send(1_000)).toEqual([true, 1_000])
})

it('gives every status back and follows nothing', async () => {
  for (const status of [301, 404, 429, 503]) {
    handle = (_, response) => response.writeHead(status, { location: '/elsewhere', 'retry-after': '7' }).end('no')
    const answer = await client().request(get)
    expect([answer.status, answer.text, answer.headers['retry-after']]).toEqual([status, 'no', '7'])
  }
})

it('ends when no answer comes in time, before or after the body was sent', async () => {
  handle = () => {}
  const late = client({ timeoutMs: 50 }).request({ method: 'POST', path: '/', body: 'x' })
  await expect(late).rejects.toMatchObject({ code: 'HTTP_TIMEOUT', sent: true })
  const deaf = net.createServer((socket) => socket.pause().on('error', () => {}))
  deaf.listen(0, '127.0.0.1')
  await once(deaf, 'listening')
  onTestFinished(() => void deaf.close())
  const body = Buffer.alloc(64 * 1024 * 1024)
  const stuck = client({ url: `http://127.0.0.1:${portOf(deaf)}`, timeoutMs: 200 })
  const error = await stuck.request({ method: 'POST', path: '/', body }).catch((e) => e)
  expect(error).toMatchObject({ code: 'HTTP_TIMEOUT', sent: false })
  expect(outcomeOfError(error).outcome).toBe('unavailable')
})

it('ends at once when it is told to, and leaves no connection behind', async () => {
  const ending = new AbortController()
  const gone = new Promise((resolve) => {
    handle = (request) => {
      request.socket.once('close', resolve)
      ending.abort()
    }
  })
  const call = client().request({ ...get, signal: ending.signal })
  await expect(call).rejects.toMatchObject({ name: 'AbortError', code: 'ABORT_ERR' })
  await gone
  const before = connections
  await expect(client().request({ ...get, signal: ending.signal })).rejects.toThrow('ended')
  expect(connections).toBe(before)
})

it('refuses an answer that is too large, zipped or not', async () => {
  handle = (_, response) => response.end('x'.repeat(2_000))
  const error = await client({ answerBytesMax: 1_000 })
    .request(get)
    .catch((e) => e)
  expect(error).toMatchObject({ code: 'HTTP_ANSWER_TOO_LARGE', sent: true })
  expect(outcomeOfError(error).outcome).toBe('unavailable')
  handle = (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('x'.repeat(90_000)))
  const bomb = client({ answerBytesMax: 1_000, gzipFromBytes: 1 }).request(get)
  await expect(bomb).rejects.toMatchObject({ code: 'HTTP_ANSWER_FOREIGN' })
})

it('half an answer is none, and what is not JSON is foreign', async () => {
  handle = (_, response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('{"half":', () => response.destroy())
  }
  const cut = await client()
    .request(get)
    .catch((e) => e)
  expect(cut).toMatchObject({ code: 'ECONNRESET', sent: true })
  for (const text of ['', '<html>', '{"a":']) {
    handle = (_, response) => response.end(text)
    const answer = await client().request(get)
    expect(() => answer.json()).toThrow(/HTTP 200 with/)
    expect(outcomeOfError(caught(() => answer.json())).outcome).toBe('unavailable')
  }
})

it('says what the network said: refused, not TLS, a secret never', async () => {
  const free = net.createServer()
  free.listen(0, '127.0.0.1')
  await once(free, 'listening')
  const port = portOf(free)
  free.close()
  await once(free, 'close')
  const refused = await client({ url: `http://u:${secret}@127.0.0.1:${port}` })
    .request(get)
    .catch((e) => e)
  expect([refused.code, refused.sent]).toEqual(['ECONNREFUSED', false])
  expect(outcomeOfError(refused).outcome).toBe('unavailable')
  const plain = await client({ url: `https://127.0.0.1:${portOf(server)}` })
    .request(get)
    .catch((e) => e)
  expect(['misconfigured', 'unavailable']).toContain(outcomeOfError(plain).outcome)
  handle = (_, response) => response.writeHead(403).end(`the key ${secret} is wrong`)
  const answer = await client({ secrets: [secret] }).request(get)
  expect(answer.text).toBe('the key ••• is wrong')
  expect(`${refused.message}${refused.stack}`).not.toContain(secret)
})

it('gives up on a connection that is not made', async () => {
  const full = net.createServer((socket) => socket.pause().on('error', () => {}))
  full.listen(0, '127.0.0.1')
  await once(full, 'listening')
  onTestFinished(() => void full.close())
  const never = client({ url: `https://127.0.0.1:${portOf(full)}`, connectMs: 50 }).request(get)
  const error = await never.catch((e) => e)
  expect([error.code, error.sent]).toEqual(['HTTP_CONNECT_TIMEOUT', false])
  expect(outcomeOfError(error).outcome).toBe('unavailable')
})

function caught(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    return error
  }
}
