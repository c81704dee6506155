/** The platform's server on loopback, until it is told to stop. */
import { randomBytes } from 'node:crypto'
import { migrateServer, startServer } from 'hermod-server'

export async function play(_system, { url, outbox }, session) {
  const server = await startServer(apiConfig(url, outbox), {
    prepare: ({ pool }) => migrateServer(pool),
  })
  const stop = session.told('stop')
  session.tell({ word: 'ready', url: server.url })
  await stop
  await server.stop()
}

export function apiConfig(url, outbox) {
  return {
    databaseUrl: url,
    searchDatabaseUrl: url,
    host: '127.0.0.1',
    port: 0,
    secret: randomBytes(32).toString('hex'),
    issuers: [],
    defaultRole: 'editor',
    workspace: { provider: 'google', folder: '' },
    auditIp: 'truncated',
    trustProxy: false,
    development: true,
    outbox,
    logLevel: 'silent',
    limits: { bodyBytes: 1_048_576, documentBytes: 4_194_304, perMinute: 100_000_000 },
  }
}
