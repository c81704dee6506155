// One caller does not keep the server from the others: failed tokens cost no look-up, an answered request gives its socket back, and
// the imports of one person leave room for those of others.

import { request as httpRequest } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { useServer } from '../support/server.ts'

const limits = { bodyBytes: 1_048_576, documentBytes: 4_194_304, perMinute: 600 }
const server = useServer({ limits }, { unreadBodyMs: 200 })
let port = 0
const sockets: { destroy(): unknown }[] = []

beforeAll(async () => {
  await server.app.listen({ host: '127.0.0.1', port: 0 })
  port = (server.app.server.address() as AddressInfo).port
})
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

describe('a body that trickles after the answer', () => {
  const closed = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()))
  it.each([
    ['401', 'POST /api/v2/documents', ''],
    ['404', 'POST /api/v2/nothing', ''],
    ['405', 'PUT /api/v2/people/import', ''],
  ])('%s does not keep its socket', async (status, line, more) => {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    let said = ''
    socket.on('data', (piece) => {
      said += piece
    })
    socket.on('error', () => {})
    const gone = closed(socket)
    socket.write(
      `${line} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n${more}\r\n{`,
    )
    const drip = setInterval(() => socket.writable && socket.write(' '), 20)
    try {
      await eventually(async () => said.startsWith(`HTTP/1.1 ${status}`))
      await gone
    } finally {
      clearInterval(drip)
    }
  })

  it('that arrives soon is read to its end, and the connection goes on', async () => {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    let said = ''
    socket.on('data', (piece) => {
      said += piece
    })
    const head =
      'POST /api/v2/documents HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n'
    socket.write(`${head}{`)
    await eventually(async () => said.includes('401'))
    socket.write('   ')
    socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n')
    await eventually(async () => said.includes('{"status":"ok"}'))
  })
})

describe('imports', () => {
  it('of one person leave room for those of others', async () => {
    const slow = async () => {
      const request = httpRequest({
        port,
        method: 'POST',
        path: '/api/v2/imports',
        headers: {
          authorization: `Bearer ${await server.token('greedy', 'operator')}`,
          'content-type': 'application/x-ndjson',
          'idempotency-key': crypto.randomUUID(),
          'content-length': '1000000',
        },
      })
      sockets.push(request)
      const answered = new Promise<number | undefined>((resolve) => {
        request.on('error', () => resolve(undefined))
        request.on('response', (answer) => {
          answer.resume()
          resolve(answer.statusCode)
        })
      })
      await new Promise((resolve) => request.write('{}\n', resolve))
      return answered
    }
    const outcomes: (number | undefined | 'open')[] = []
    for (let n = 0; n < 6; n++) {
      outcomes.push('open')
      slow().then((status) => {
        outcomes[n] = status
      })
    }
    await eventually(async () => outcomes.filter((one) => one === 503).length === 2)
    expect(outcomes.filter((one) => one === 'open')).toHaveLength(4)
    const other = await server.ask('POST', '/api/v2/imports?dryRun=true', {
      as: 'modest',
      role: 'operator',
      body: '{"title":"T","docType":"RFC","product":"P"}\n',
      headers: { 'content-type': 'application/x-ndjson' },
    })
    expect(other.statusCode, other.body).toBe(200)
  })
})

describe('failed tokens', () => {
  it('beyond the limit cost no look-up in the database, and tokens that were good still pass', async () => {
    const made = await server.ask('POST', '/api/v2/tokens', {
      as: 'ada',
      body: { name: 'robot', scopes: ['document:read'] },
    })
    const good = { authorization: `Bearer ${made.json().secret}` }
    const forged = (n: number) => ({ authorization: `Bearer hmd_${String(n).padStart(8, '0')}_${'A'.repeat(43)}` })
    const ask = async (headers: Record<string, string>) =>
      (await server.ask('GET', '/api/v2/documents', { headers })).statusCode
    expect(await ask(good)).toBe(200)
    let failed = 0
    while ((await ask(forged(failed))) === 401) failed++
    expect(failed).toBeGreaterThan(500)
    expect(failed).toBeLessThanOrEqual(limits.perMinute)
    const { pool } = server.platform
    const real = pool.query
    let asked = 0
    pool.query = ((...given: unknown[]) => {
      if (String(given[0]).includes('hermod.api_token')) asked++
      return (real as (...all: unknown[]) => unknown).apply(pool, given)
    }) as never
    try {
      for (let n = 700; n < 720; n++) expect(await ask(forged(n)), String(n)).toBe(429)
      expect(asked).toBe(0)
      expect(await ask(good)).toBe(200)
      expect((await server.ask('GET', '/api/v2/documents', { as: 'ada' })).statusCode).toBe(200)
    } finally {
      pool.query = real
    }
  })
})
