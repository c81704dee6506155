/**
 * The stage: one PostgreSQL 18 with durable settings for everybody, and for every measurement a
 * fresh database, cloned from a template that has the system installed.
 */
import { startPostgres } from 'hermod/embedded'
import { measure } from './measure.mjs'
import { openPool } from './pool.mjs'

export const serverSettings = {
  shared_buffers: '512MB',
  max_wal_size: '8GB',
  // Checkpoints happen between measurements, not in the middle of one.
  checkpoint_timeout: '1h',
}

const forgetEvents = 10_000

/** Not durable only where figures mean nothing: in a smoke run. */
export async function openStage({ durable = true } = {}) {
  const postgres = await startPostgres({ durable, settings: serverSettings })
  return new Stage(postgres)
}

class Stage {
  #postgres
  #admin
  #templates = new Map()
  #count = 0

  constructor(postgres) {
    this.#postgres = postgres
    this.#admin = openPool(postgres.url(), 2)
  }

  get version() {
    return this.#postgres.version
  }

  /**
   * A database with the system installed; `events`: and this backlog committed. It is cloned page by
   * page through the buffers, so it is as warm as one that was just written.
   */
  async database(system, { events = 0 } = {}) {
    const name = `bench_${++this.#count}`
    await this.#clone(name, await this.#template(system, events))
    return new Database(this.#admin, name, this.#postgres.url(name))
  }

  async #clone(name, template) {
    await this.#admin.query(`create database ${name} template ${template} strategy wal_log`)
  }

  fill(system, { url }, events, from = 1) {
    return measure({ role: 'fill', system, url, events, from })
  }

  async #template(system, events) {
    const name = `template_${system.replaceAll('-', '_')}${events > 0 ? `_${events}` : ''}`
    if (!this.#templates.has(name)) {
      this.#templates.set(name, events)
      const url = this.#postgres.url(name)
      if (events === 0) {
        await this.#admin.query(`create database ${name}`)
        await measure({ role: 'install', system, url })
      } else {
        await this.#clone(name, await this.#template(system, 0))
        await this.fill(system, { url }, events)
      }
    }
    return name
  }

  /** The large backlogs are not needed by the next scenario. */
  async forget() {
    for (const [name, events] of this.#templates) {
      if (events < forgetEvents) continue
      await this.#admin.query(`drop database ${name} with (force)`)
      this.#templates.delete(name)
    }
  }

  /** What is dirty is written now, before the clock starts. */
  async checkpoint() {
    await this.#admin.query('checkpoint')
  }

  async walBytes() {
    const { rows } = await this.#admin.query(`select pg_current_wal_insert_lsn() - '0/0' as bytes`)
    return Number(rows[0].bytes)
  }

  async close() {
    await this.#admin.end()
    await this.#postgres.destroy()
  }
}

class Database {
  #admin

  constructor(admin, name, url) {
    this.#admin = admin
    this.name = name
    this.url = url
  }

  async query(text, values) {
    return this.ask(async (pool) => (await pool.query(text, values)).rows)
  }

  /** Asks with one connection, for a system's own check. */
  async ask(work) {
    const pool = openPool(this.url, 1)
    try {
      return await work(pool)
    } finally {
      await pool.end()
    }
  }

  async drop() {
    await this.#admin.query(`drop database ${this.name} with (force)`)
  }
}
