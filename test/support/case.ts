// Scripted cases: an exact order of statements that must end well on the real engine, and badly on
// an engine with one safeguard removed (test/ablations). Every run has a database of its own.

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { beforeAll, it, onTestFinished } from 'vitest'
import { type TestDatabase, type UseDatabaseOptions, useDatabase } from './database.ts'
import { eventually } from './eventually.ts'
import { rootPath } from './source-tree.ts'
import { withDatabase } from './template.ts'

/** The modules under test: from `packages/hermod/src`, or from a patched copy of it. */
export type Engine = typeof import('../../packages/hermod/src/index.ts') & {
  readonly testing: typeof import('../../packages/hermod/src/testing/index.ts')
  /** Any other module: `await engine.load<typeof import('…/src/flow/claim.ts')>('flow/claim.ts')`. */
  load<M>(path: string): Promise<M>
}

export type Env = {
  /** Freshly migrated (by the real or by patched migrations), used by nobody else. */
  readonly db: TestDatabase
  readonly engine: Engine
}

export type Case = {
  /** As in the list of cases; a variation adds a colon: `late-commit: without other traffic`. */
  readonly title: string
  readonly run: (env: Env) => Promise<void>
}

export function defineCase(title: string, run: Case['run']): Case {
  return { title, run }
}

export const engineRoot = join(rootPath, 'packages', 'hermod')

/** `js`: the root holds compiled files, which Node loads by itself. */
export async function loadEngine(root: string = engineRoot, ending: 'ts' | 'js' = 'ts'): Promise<Engine> {
  const load = <M>(path: string): Promise<M> =>
    import(/* @vite-ignore */ pathToFileURL(join(root, 'src', path.replace(/ts$/, ending))).href)
  const [hermod, testing] = await Promise.all([
    load<typeof import('../../packages/hermod/src/index.ts')>('index.ts'),
    load<typeof import('../../packages/hermod/src/testing/index.ts')>('testing/index.ts'),
  ])
  return { ...hermod, testing, load }
}

/** Some wait for the breaker's real pauses, on a machine that others load too. */
const caseMs = 60_000

/** One test per case, each on a fresh copy of a migrated database; by default in an own cluster. */
export function exerciseCases(cases: readonly Case[], options: UseDatabaseOptions = { ownCluster: true }): void {
  const server = useDatabase(options)
  let engine: Engine
  // On a busy machine reading the sources takes longer than a case may.
  beforeAll(async () => {
    engine = await loadEngine()
  })
  for (const { title, run } of cases) {
    it(
      title,
      async () => {
        const db = await copyDatabase(server, server.name)
        await run({ db, engine })
      },
      caseMs,
    )
  }
}

let copies = 0

/**
 * A new database on the same server, gone when the test ends. What a case leaves behind makes it
 * fail; a failed one, and one that is expected to (`force`), is cleared away.
 */
export async function copyDatabase(
  server: TestDatabase,
  template: string,
  { force = false } = {},
): Promise<TestDatabase> {
  const name = `${server.name}_${++copies}`
  // The template's last connection may still be on its way out.
  await eventually(() => server.admin.query(`create database ${name} template ${template}`), {
    everyMs: 20,
  })
  const url = withDatabase(server.url, name)
  const pool = new pg.Pool({ connectionString: url, application_name: 'hermod-case', max: 10 })
  pool.on('error', () => {})
  const closers: Array<() => Promise<unknown>> = []
  onTestFinished(async ({ task }) => {
    const cleared = force || task.result?.state === 'fail'
    if (!cleared) {
      for (const close of closers) await close()
      await pool.end()
    }
    await unused(server, name, cleared).catch(() => {})
    if (cleared) await server.admin.query(`drop database ${name} with (force)`).catch(() => {})
    else await server.admin.query(`drop database ${name}`)
  })
  return caseDatabase(server, { name, url, pool, closers })
}

/** DROP DATABASE looks for connections every 100 ms only; most are gone after a few. */
async function unused({ admin }: TestDatabase, name: string, terminate: boolean): Promise<void> {
  const end = terminate ? 'pg_terminate_backend(pid)' : '1'
  const open = `select ${end} from pg_stat_activity where datname = $1 and backend_type = 'client backend'`
  await eventually(async () => (await admin.query(open, [name])).rows.length === 0, {
    timeoutMs: 2_000,
  })
}

type Made = {
  readonly name: string
  readonly url: string
  readonly pool: pg.Pool
  readonly closers: Array<() => Promise<unknown>>
}

function caseDatabase(server: TestDatabase, { name, url, pool, closers }: Made): TestDatabase {
  return {
    name,
    url,
    pool,
    get admin() {
      return server.admin
    },
    get postgres() {
      return server.postgres
    },
    query: async <R extends pg.QueryResultRow>(sql: string, params?: unknown[]) =>
      (await pool.query<R>(sql, params)).rows,
    closeAtEnd: (what) => {
      closers.push(what)
    },
  }
}
