// A database of its own for every test file, cloned from the migrated template. The file fails if
// it leaves connections or prepared transactions behind; a failed file keeps its database.

import { basename } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, inject } from 'vitest'
import { type Postgres, startPostgres } from '../../packages/hermod/src/embedded/index.ts'
import { eventually } from './eventually.ts'
import type {} from './global-setup.ts'
import { migrateDatabase, withDatabase } from './template.ts'

export type UseDatabaseOptions = {
  /** A cluster of its own: for tests about snapshots, crashes, restarts, standbys. */
  readonly ownCluster?: boolean
  /** With `ownCluster`: fsync and full_page_writes on. */
  readonly durable?: boolean
  /** With `ownCluster`: major version, for example `'14'`. */
  readonly version?: string
  /** With `ownCluster`: settings of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>
  /** An empty database instead of a migrated one. */
  readonly empty?: boolean
}

/** Usable inside hooks and tests (not while the file is being collected). */
export type TestDatabase = {
  readonly name: string
  readonly url: string
  /** At most 10 connections; ended by the harness. */
  readonly pool: pg.Pool
  /** Connected to another database of the server: watching, terminating, creating databases. */
  readonly admin: pg.Pool
  /** The cluster, when `ownCluster`. */
  readonly postgres: Postgres
  query<R extends pg.QueryResultRow = Record<string, unknown>>(sql: string, params?: unknown[]): Promise<R[]>
  /** Closes `what` when the file ends, before the check for leftovers. */
  closeAtEnd(what: () => Promise<unknown>): void
}

type Opened = {
  readonly name: string
  readonly url: string
  readonly pool: pg.Pool
  readonly admin: pg.Pool
  readonly postgres: Postgres | undefined
}

export function useDatabase(options: UseDatabaseOptions = {}): TestDatabase {
  let opened: Opened | undefined
  let failed = false
  const closers: Array<() => Promise<unknown>> = []
  beforeAll(async () => {
    opened = await open(options)
  })
  afterEach(({ task }) => {
    if (task.result?.state === 'fail') failed = true
  })
  afterAll(async () => {
    if (!opened) return
    for (const close of closers.splice(0)) await close()
    await finish(opened, failed)
  })
  const current = (): Opened => {
    if (!opened) throw new Error('useDatabase(): the database exists only inside hooks and tests')
    return opened
  }
  return handle(current, closers)
}

function handle(current: () => Opened, closers: Array<() => Promise<unknown>>): TestDatabase {
  return {
    get name() {
      return current().name
    },
    get url() {
      return current().url
    },
    get pool() {
      return current().pool
    },
    get admin() {
      return current().admin
    },
    get postgres() {
      const { postgres } = current()
      if (!postgres) throw new Error('useDatabase({ ownCluster: true }) is needed for .postgres')
      return postgres
    },
    query: async <R extends pg.QueryResultRow>(sql: string, params?: unknown[]) =>
      (await current().pool.query<R>(sql, params)).rows,
    closeAtEnd: (what) => {
      closers.push(what)
    },
  }
}

async function open(options: UseDatabaseOptions): Promise<Opened> {
  const postgres = options.ownCluster ? await startPostgres(clusterOptions(options)) : undefined
  const server = inject('testServer')
  const adminUrl = postgres?.url() ?? server.adminUrl
  const admin = quietPool(adminUrl, 'hermod-test-admin', 3)
  const name = databaseName(server.prefix)
  const url = withDatabase(adminUrl, name)
  if (postgres || options.empty) {
    await admin.query(`create database ${name} template template0`)
    if (!options.empty) await migrateDatabase(url)
  } else {
    if (server.templateError) throw new Error(`migrations failed: ${server.templateError}`)
    await cloneTemplate(admin, name, server.template)
  }
  return { name, url, pool: quietPool(url, 'hermod-test', 10), admin, postgres }
}

function clusterOptions({ durable, version, settings }: UseDatabaseOptions) {
  return {
    ...(durable === undefined ? {} : { durable }),
    ...(version === undefined ? {} : { version }),
    ...(settings === undefined ? {} : { settings }),
  }
}

/** Writing the clone through the log needs no checkpoint; measured 31 ms against 80 ms. */
async function cloneTemplate(admin: pg.Pool, name: string, template: string): Promise<void> {
  const strategy = inject('testServer').major >= 15 ? 'strategy wal_log' : ''
  // Two files that clone at the same moment collide on the template for an instant.
  await eventually(() => admin.query(`create database ${name} template ${template} ${strategy}`), {
    everyMs: 25,
    what: `a clone of ${template}`,
  })
}

let count = 0

function databaseName(prefix: string): string {
  const file = basename(expect.getState().testPath ?? 'file').replace(/\.test\.ts$/, '')
  const slug = file
    .replace(/[^a-z0-9]+/gi, '_')
    .toLowerCase()
    .slice(0, 30)
  return `${prefix}${slug}_${process.pid}_${++count}`
}

/** A server that restarts breaks idle connections; without a listener that ends the process. */
function quietPool(connectionString: string, name: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString, application_name: name, max })
  pool.on('error', () => {})
  return pool
}

async function finish(opened: Opened, failed: boolean): Promise<void> {
  const { name, url, pool, admin, postgres } = opened
  await pool.end()
  try {
    if (postgres && !postgres.running) return
    await assertNothingLeft(admin, name)
    if (failed && !postgres) console.log(`kept database: ${url}`)
    else await dropDatabase(admin, name)
  } catch (error) {
    await rollbackPrepared(url)
    await dropDatabase(admin, name)
    throw error
  } finally {
    await admin.end()
    await postgres?.destroy()
  }
}

async function dropDatabase(admin: pg.Pool, name: string): Promise<void> {
  await admin.query(`drop database if exists ${name} with (force)`)
}

/** A database with a prepared transaction cannot be dropped, not even by force. */
async function rollbackPrepared(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query('select gid from pg_prepared_xacts where database = current_database()')
  for (const { gid } of rows) await client.query(`rollback prepared ${client.escapeLiteral(gid)}`)
  await client.end()
}

/** A closed connection's backend needs a moment to go; whoever stays longer was left open. */
async function assertNothingLeft(admin: pg.Pool, name: string): Promise<void> {
  await eventually(
    async () => {
      const left = await leftovers(admin, name)
      if (left.length > 0) throw new Error(left.join('; '))
    },
    { timeoutMs: 3_000, everyMs: 20, what: `the file to close what it opened in ${name}` },
  )
}

async function leftovers(admin: pg.Pool, name: string): Promise<string[]> {
  const { rows } = await admin.query(
    `select format('connection %s (%s, %s): %s', pid, application_name, state, left(query, 80)) as what
       from pg_stat_activity where datname = $1 and backend_type = 'client backend'
     union all
     select format('prepared transaction %s', gid) from pg_prepared_xacts where database = $1`,
    [name],
  )
  return rows.map((row) => row.what)
}
