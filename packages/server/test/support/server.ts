// A whole server per test file: its own database, an issuer, the application (called in-process),
// and on demand a worker with the real reactions and the PostgreSQL search engine.

import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { InjectOptions, LightMyRequestResponse } from 'fastify'
import type { Worker } from 'hermod'
import { afterAll, beforeAll } from 'vitest'
import { type TestDatabase, useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import type { Role } from '../../src/actor.ts'
import type { Config } from '../../src/config.ts'
import { createPlatform, type OpenPlatform, type PlatformParts } from '../../src/create-platform.ts'
import { type App, type AppOptions, buildApp } from '../../src/http/app.ts'
import { migrateServer } from '../../src/migrate.ts'
import { installReactions } from '../../src/reactions.ts'
import { startIssuer, type TestIssuer } from './issuer.ts'

export interface Asking {
  /** Name of a person: `ada` is ada@example.org at the issuer; nobody when left out. */
  readonly as?: string
  readonly role?: Role
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** If-Match of this version. */
  readonly version?: string | number
}

export interface TestServer {
  readonly db: TestDatabase
  readonly platform: OpenPlatform
  readonly app: App
  readonly issuer: TestIssuer
  /** Folder of the local workspace. */
  readonly folder: string
  ask(method: string, url: string, asking?: Asking): Promise<LightMyRequestResponse>
  token(name: string, role?: Role): Promise<string>
  /** Starts a worker with the real reactions; stopped by the harness. */
  work(): Promise<Worker>
  /** Until every subscription has delivered everything committed so far. */
  caughtUp(): Promise<void>
}

/** `parts`: a clock, a log or limits of time of the test's own. */
export function useServer(overrides: Partial<Config> = {}, parts: PlatformParts & AppOptions = {}): TestServer {
  const db = useDatabase()
  const state: Partial<{
    platform: OpenPlatform
    app: App
    issuer: TestIssuer
    folder: string
    worker: Worker
  }> = {}
  beforeAll(async () => {
    state.folder = await mkdtemp(join(tmpdir(), 'hermod-workspace-'))
    state.issuer = await startIssuer('google', { trustedDomains: ['example.org'] })
    const config = testConfig(db.url, state.issuer, state.folder, overrides)
    state.platform = createPlatform(config, parts)
    await migrateServer(state.platform.pool)
    await installReactions(state.platform)
    state.app = await buildApp(state.platform, parts)
    await state.app.ready()
  })
  // Registered after useDatabase's own, so it runs before the database is taken away.
  afterAll(async () => {
    await state.worker?.stop()
    await state.app?.close()
    await state.platform?.close()
    await state.issuer?.close()
    if (state.folder) await rm(state.folder, { recursive: true, force: true })
  })
  const of = <K extends keyof typeof state>(key: K): NonNullable<(typeof state)[K]> => {
    const value = state[key]
    if (value === undefined) throw new Error(`useServer(): ${key} exists only inside tests`)
    return value as NonNullable<(typeof state)[K]>
  }
  const token = (name: string, role: Role = 'editor') =>
    of('issuer').token({
      sub: `sub-${name}`,
      email: `${name}@example.org`,
      email_verified: true,
      name,
      roles: [role],
    })
  return {
    db,
    token,
    get platform() {
      return of('platform')
    },
    get app() {
      return of('app')
    },
    get issuer() {
      return of('issuer')
    },
    get folder() {
      return of('folder')
    },
    ask: async (method, url, { as, role, body, headers = {}, version } = {}) => {
      const all: Record<string, string> = { ...headers }
      if (as !== undefined) all.authorization = `Bearer ${await token(as, role)}`
      if (version !== undefined) all['if-match'] = `"${version}"`
      const options = { method, url, headers: all } as InjectOptions
      return of('app').inject(body === undefined ? options : { ...options, payload: body as object })
    },
    work: async () => {
      state.worker ??= await of('platform').outbox.start({
        name: 'test',
        busyPollMs: 5,
        pollMs: 50,
      })
      return state.worker
    },
    caughtUp: () => caughtUp(of('platform')),
  }
}

function testConfig(databaseUrl: string, issuer: TestIssuer, folder: string, overrides: Partial<Config>): Config {
  return {
    databaseUrl,
    searchDatabaseUrl: databaseUrl,
    host: '127.0.0.1',
    port: 0,
    secret: randomBytes(32).toString('hex'),
    issuers: [issuer.config],
    defaultRole: 'editor',
    workspace: { provider: 'local', folder },
    auditIp: 'full',
    trustProxy: false,
    limits: { bodyBytes: 1_048_576, documentBytes: 4_194_304, perMinute: 1_000_000 },
    retention: {},
    development: false,
    outbox: true,
    logLevel: 'silent',
    ...overrides,
  }
}

async function caughtUp({ outbox, pool }: OpenPlatform): Promise<void> {
  await eventually(
    async () => {
      const { rows } = await pool.query(
        `select (select count(*) from outbox.event e where not exists (select from outbox.log l where l.event_id = e.id))::int as unnumbered`,
      )
      const { subscriptions } = await outbox.stats()
      const open = subscriptions.filter(({ pending, processing, retrying }) =>
        [pending, processing, retrying].some((count) => count !== 0),
      )
      if (rows[0].unnumbered > 0 || open.length > 0) throw new Error(JSON.stringify(rows[0]))
    },
    { timeoutMs: 20_000, everyMs: 10, what: 'every subscription to catch up' },
  )
}
