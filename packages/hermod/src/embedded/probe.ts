// Asks a PostgreSQL server over TCP whether it accepts connections, and finds free ports.
// Speaks the first bytes of the wire protocol itself, so that no driver is needed to start.

import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { EmbeddedError, errnoOf } from './errors.ts'

const host = '127.0.0.1'

/** True once the server answers a startup message with "authentication ok". */
export function acceptsConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    const answer = (ready: boolean) => {
      socket.destroy()
      resolve(ready)
    }
    socket.setTimeout(1_000, () => answer(false))
    socket.on('error', () => answer(false))
    socket.on('close', () => answer(false))
    socket.on('connect', () => socket.write(startupMessage()))
    // 'R' = authentication; 'E' = not yet ("the database system is starting up").
    socket.once('data', (data) => answer(data[0] === 0x52))
  })
}

function startupMessage(): Buffer {
  const body = Buffer.from('user\0postgres\0database\0postgres\0\0', 'latin1')
  const head = Buffer.alloc(8)
  head.writeInt32BE(body.length + 8, 0)
  head.writeInt32BE(196_608, 4) // protocol 3.0
  return Buffer.concat([head, body])
}

export async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    throw loopbackError(error)
  }
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw loopbackError(address)
  return address.port
}

/** In a fresh network namespace listening works but nothing arrives: find out before waiting. */
export async function assertLoopback(): Promise<void> {
  const server = createServer((socket) => socket.destroy())
  try {
    server.listen(0, host)
    await once(server, 'listening')
    const address = server.address()
    const port = address !== null && typeof address === 'object' ? address.port : 0
    const socket = connect({ host, port, timeout: 3_000 })
    socket.once('timeout', () => socket.destroy(new Error('timeout')))
    await once(socket, 'connect')
    socket.destroy()
  } catch (error) {
    throw loopbackError(error)
  } finally {
    server.close()
  }
}

function loopbackError(cause: unknown): EmbeddedError {
  return new EmbeddedError(
    'HMD_EMBEDDED_LOOPBACK',
    `Cannot reach ${host} (${errnoOf(cause) ?? String(cause)}): the loopback interface is down. ` +
      'In a network namespace run `ip link set lo up` first.',
    { cause },
  )
}
