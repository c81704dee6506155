/** Assembles the parts from the configuration; whoever starts it also ends it. */
import { createOutbox } from 'hermod'
import { postgresSearch } from 'hermod/sinks/search/postgres'
import pg from 'pg'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { createLog } from './log.ts'
import type { Platform } from './platform.ts'

export interface PlatformParts {
  readonly log?: Logger
  readonly clock?: () => Date
  readonly poolMax?: number
}

export interface OpenPlatform extends Platform {
  close(): Promise<void>
}

export function createPlatform(config: Config, parts: PlatformParts = {}): OpenPlatform {
  const log = parts.log ?? createLog(config.logLevel)
  const pool = poolOf(config.databaseUrl, parts.poolMax ?? 20, log)
  const outbox = createOutbox({
    pool,
    listener: { warning: ({ code, message }) => log.warn({ code, detail: message }) },
  })
  const search = postgresSearch({ connectionString: config.searchDatabaseUrl })
  return {
    config,
    pool,
    outbox,
    search,
    log,
    clock: parts.clock ?? (() => new Date()),
    close: async () => {
      await outbox.close()
      await search.close()
      await pool.end()
    },
  }
}

function poolOf(connectionString: string, max: number, log: Logger): pg.Pool {
  const pool = new pg.Pool({
    connectionString,
    max,
    application_name: 'hermod-server',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
  })
  // A connection that breaks while idle is replaced; the next query says what is wrong.
  pool.on('error', ({ message }) => {
    // Whoever closes the pool may end the database right after it: nothing is lost then.
    if (!pool.ending) log.warn({ code: 'database.lost', detail: message })
  })
  return pool
}
