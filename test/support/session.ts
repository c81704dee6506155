// Scripted sessions for interleaving tests: one connection each, statements in an exact order.
// Waiting is on what PostgreSQL says about the backend (pg_stat_activity, pg_locks), not on time.

import pg from 'pg'
import { onTestFinished } from 'vitest'
import type { TestDatabase } from './database.ts'
import { eventually } from './eventually.ts'

export type Row = Record<string, unknown>

export type Running<T> = {
  readonly promise: Promise<T>
  /** True once the statement has ended, well or badly. */
  readonly done: boolean
  /** Resolves when the backend waits for a lock (held by `by`, when given); fails after 10 s. */
  blocked(by?: Session): Promise<void>
}

export type Session = {
  readonly name: string
  readonly pid: number
  /** For code under test that takes a client. */
  readonly client: pg.Client
  run<R extends pg.QueryResultRow = Row>(sql: string, params?: unknown[]): Promise<R[]>
  /** Starts a statement without waiting for it. */
  start<R extends pg.QueryResultRow = Row>(sql: string, params?: unknown[]): Running<R[]>
  /** Like `start`, for a function that uses the client: `a.startCall((tx) => emit(tx, event))`. */
  startCall<T>(fn: (client: pg.Client) => Promise<T>): Running<T>
  /** `begin()` or `begin('isolation level serializable')`. */
  begin(mode?: string): Promise<void>
  commit(): Promise<void>
  rollback(): Promise<void>
  /** Ends the connection; harmless when already closed. */
  close(): Promise<void>
  /** Terminates the backend from another connection and waits until it is gone. */
  kill(): Promise<void>
}

/** Opens a session; it is closed when the test ends (or the file, when opened in a hook). */
export async function session(db: TestDatabase, name: string): Promise<Session> {
  const client = new pg.Client({ connectionString: db.url, application_name: name })
  // A killed backend is part of the script and must not end the process.
  client.on('error', () => {})
  await client.connect()
  const { rows } = await client.query('select pg_backend_pid() as pid')
  const made = new ScriptedSession(db, name, client, rows[0].pid)
  closeLater(db, made)
  return made
}

function closeLater(db: TestDatabase, made: Session): void {
  try {
    onTestFinished(() => made.close())
  } catch {
    db.closeAtEnd(() => made.close())
  }
}

class ScriptedSession implements Session {
  readonly name: string
  readonly pid: number
  readonly client: pg.Client
  readonly #db: TestDatabase
  #unfinished = 0
  #closed = false

  constructor(db: TestDatabase, name: string, client: pg.Client, pid: number) {
    this.#db = db
    this.name = name
    this.client = client
    this.pid = pid
  }

  async run<R extends pg.QueryResultRow = Row>(sql: string, params?: unknown[]): Promise<R[]> {
    return (await this.client.query<R>(sql, params)).rows
  }

  start<R extends pg.QueryResultRow = Row>(sql: string, params?: unknown[]): Running<R[]> {
    return this.startCall(() => this.run<R>(sql, params))
  }

  startCall<T>(fn: (client: pg.Client) => Promise<T>): Running<T> {
    this.#unfinished++
    const state = { done: false }
    const promise = fn(this.client).finally(() => {
      state.done = true
      this.#unfinished--
    })
    // The script looks at the outcome later; until then a failure is not "unhandled".
    promise.catch(() => {})
    return {
      promise,
      get done() {
        return state.done
      },
      blocked: (by) => this.#untilBlocked(state, by),
    }
  }

  async #untilBlocked(state: { done: boolean }, by: Session | undefined): Promise<void> {
    const who = by ? ` by ${by.name}` : ''
    await eventually(async () => state.done || (await blocks(this.#db, this.pid, by?.pid)), {
      what: `session ${this.name} to be blocked${who}`,
    })
    if (state.done) throw new Error(`session ${this.name} ended its statement; it never blocked`)
  }

  async begin(mode = ''): Promise<void> {
    await this.client.query(`begin ${mode}`)
  }

  async commit(): Promise<void> {
    await this.client.query('commit')
  }

  async rollback(): Promise<void> {
    await this.client.query('rollback')
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    // A backend that waits for a lock does not hear a polite goodbye.
    if (this.#unfinished > 0) await this.kill().catch(() => {})
    await this.client.end().catch(() => {})
  }

  async kill(): Promise<void> {
    await this.#db.admin.query('select pg_terminate_backend($1)', [this.pid])
    await eventually(async () => !(await exists(this.#db, this.pid)), {
      what: `the backend of session ${this.name} to end`,
    })
  }
}

async function blocks(db: TestDatabase, pid: number, by: number | undefined): Promise<boolean> {
  const { rows } = await db.admin.query(
    `select from pg_stat_activity
      where pid = $1 and state = 'active' and wait_event_type = 'Lock'
        and exists (select from pg_locks where pid = $1 and not granted)
        and ($2::int is null or $2 = any (pg_blocking_pids($1)))`,
    [pid, by ?? null],
  )
  return rows.length > 0
}

async function exists(db: TestDatabase, pid: number): Promise<boolean> {
  const { rows } = await db.admin.query('select from pg_stat_activity where pid = $1', [pid])
  return rows.length > 0
}
