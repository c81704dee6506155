// The demo's PostgreSQL: embedded, on a port that people can remember, in a folder that is kept.

import { rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { resolve } from 'node:path'
import { startPostgres } from '../../packages/hermod/dist/embedded/index.js'

const usualPort = 54321

export async function openDatabase({ data, ephemeral, reset }) {
  const port = (await isFree(usualPort)) ? usualPort : undefined
  if (ephemeral) return startPostgres({ ...(port && { port }) })
  if (reset) await deleteData(data)
  return startPostgres({ dataDir: resolve(data), durable: true, ...(port && { port }) })
}

/** Opened once more, so that a server still running in there ends, and nothing else is deleted. */
async function deleteData(data) {
  const old = await startPostgres({ dataDir: resolve(data) })
  await old.destroy()
  await rm(resolve(data), { recursive: true, force: true })
}

function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
