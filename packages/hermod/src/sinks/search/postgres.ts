/**
 * PostgreSQL as a search engine: a schema of its own, in the database of the outbox or in another.
 * Asynchronous, retried and replayable like any other; an older version never wins.
 */
import pg from 'pg'
import { checkOptions, having, integer, optional, refuse, secret, text } from '../../check-options.ts'
import type { Database } from '../../database.ts'
import type { Capabilities, Outcome } from '../sink.ts'
import { checkDefinition, checkIndexName } from './check-definition.ts'
import { checkRequest } from './check-request.ts'
import type { IndexDefinition } from './definition.ts'
import type * as contract from './engine.ts'
import { KnownGenerations, pick, told } from './generations.ts'
import { ensureIndex } from './postgres/ensure.ts'
import * as generations from './postgres/generations.ts'
import { displayed } from './postgres/hits.ts'
import { outcomeOfSqlError } from './postgres/outcomes.ts'
import { install } from './postgres/schema.ts'
import { searchIn } from './postgres/search.ts'
import { type Session, withSession } from './postgres/session.ts'
import { WordList } from './postgres/words.ts'
import { deleteFrom, purgeTombstones, upsertInto } from './postgres/write.ts'
import type { SearchRequest, SearchResult } from './request.ts'
import { worstOf } from './worst-outcome.ts'

export interface PostgresSearchOptions {
  /** A pool of `pg` (yours to end), or a connection string. */
  readonly pool?: pg.Pool
  readonly connectionString?: string
  /** `search` when left out. */
  readonly schema?: string
  /** Connections, with `connectionString`; 5 when left out. */
  readonly connectionsMax?: number
  /** How long a deletion is remembered; 7 days when left out. Longer than any retry. */
  readonly tombstonesMs?: number
}

const NAME = /^[a-z][a-z0-9_]{0,39}$/
const purgeEveryMs = 3_600_000
/** A reader may look at the generation that was live this long ago: it goes on hearing every write. */
const listedMs = 500

const optionSpec = {
  pool: optional(having<Database>(['connect', 'query'], 'must be a pool of pg')),
  connectionString: optional(secret()),
  schema: optional(text((value) => (NAME.test(String(value)) ? undefined : 'must be a lower-case name'))),
  connectionsMax: integer({ min: 1, max: 100, default: 5 }),
  tombstonesMs: integer({ min: 60_000, default: 7 * 86_400_000 }),
}

export function postgresSearch(options: PostgresSearchOptions): PostgresSearch {
  return new PostgresSearch(options)
}

export class PostgresSearch implements contract.SearchEngine {
  readonly name = 'postgres'
  readonly capabilities: Partial<Capabilities> = Object.freeze({
    itemsMax: 1_000,
    bytesMax: 8 * 1024 * 1024,
    perItemResult: true,
    externalVersion: true,
  })
  readonly #db: Database
  readonly #ownPool: pg.Pool | undefined
  readonly #schema: string
  readonly #tombstonesMs: number
  readonly #words = new WordList()
  readonly #tables = new Set<string>()
  readonly #known = new KnownGenerations<generations.PostgresGeneration>(listedMs)
  #installed = false
  #purgedAt = 0

  constructor(given: PostgresSearchOptions) {
    const options = checkOptions('postgresSearch', given, optionSpec)
    if ((options.pool === undefined) === (options.connectionString === undefined)) {
      refuse('postgresSearch', [{ field: 'pool', says: 'or connectionString must be given' }])
    }
    if (options.connectionString !== undefined) this.#ownPool = ownPool(options)
    this.#db = (options.pool ?? this.#ownPool) as unknown as Database
    this.#schema = options.schema ?? 'search'
    this.#tombstonesMs = options.tombstonesMs
    this.#tables.add(`${this.#schema}.generation`)
  }

  /** Those it has met so far: generations come and go. */
  get tables(): readonly string[] {
    return [...this.#tables]
  }

  ensureIndex(index: string, given: IndexDefinition, { signal }: contract.Call = {}) {
    const definition = checkDefinition(index, given)
    return this.#on(signal, async (session) => {
      await this.#install(session)
      const ensured = await ensureIndex(session, this.#schema, index, definition)
      await this.#list(session, index)
      return ensured
    })
  }

  upsert(index: string, documents: readonly contract.Upsert[], options: contract.Write = {}) {
    return this.#write(index, documents.length, options, (session, generation) =>
      upsertInto(session, generation, documents, this.#words),
    )
  }

  delete(index: string, documents: readonly contract.Deletion[], options: contract.Write = {}) {
    return this.#write(index, documents.length, options, (session, generation) =>
      deleteFrom(session, generation, documents),
    )
  }

  search(index: string, request: SearchRequest = {}): Promise<SearchResult> {
    return this.#reading(index, request, (session, generation) => {
      const checked = checkRequest(index, generation.definition, request)
      return searchIn(session, this.#schema, generation, checked)
    })
  }

  get(index: string, id: string, options: contract.Read = {}) {
    return this.#reading(index, options, async (session, generation) => {
      const [row] = await session.rows(
        `select version::text, hash, source::text as json from ${generation.table} where id = $1 and not deleted`,
        [id],
      )
      if (row === undefined) return undefined
      const document = displayed(generation, JSON.parse(row.json as string))
      return { id, version: BigInt(row.version as string), hash: row.hash as string, document }
    })
  }

  count(index: string, options: contract.Read = {}) {
    return this.#reading(index, options, async (session, { table }) => {
      const [row] = await session.rows(`select count(*)::text as n from ${table} where not deleted`)
      return Number(row?.n)
    })
  }

  /** In key order; the cursor is the last id. */
  scan(
    index: string,
    { after = '', limit = 1_000, ...options }: contract.ScanPage = {},
  ): Promise<contract.ScannedPage> {
    return this.#reading(index, options, async (session, { table }) => {
      const rows = await session.rows(
        `select id, version::text, hash from ${table} where not deleted and id > $1 order by id limit $2`,
        [after, limit + 1],
      )
      const documents = rows.slice(0, limit).map(({ id, version, hash }) => {
        return { id: id as string, version: BigInt(version as string), hash: hash as string }
      })
      const last = documents.at(-1)
      return { documents, ...(rows.length > limit && last && { next: last.id }) }
    })
  }

  createGeneration(index: string, given: IndexDefinition, { signal }: contract.Call = {}) {
    const definition = checkDefinition(index, given)
    return this.#on(signal, async (session) => {
      await this.#install(session)
      const made = await generations.createInOneStep(session, this.#schema, index, definition)
      await this.#list(session, index)
      return told(made)
    })
  }

  /** VACUUM first: after a bulk load the planner would prefer reading everything. */
  swapGeneration(index: string, { signal }: contract.Call = {}) {
    return this.#on(signal, async (session) => {
      const made = (await this.#list(session, index)).find(({ state }) => state === 'building')
      if (made !== undefined) {
        await session.rows(`vacuum (analyze) ${made.table}`)
        await session.rows(`vacuum (analyze) ${made.wordTable}`)
      }
      return told(await this.#changing(index, () => generations.swapGeneration(session, this.#schema, index)))
    })
  }

  rollBackGeneration(index: string, { signal }: contract.Call = {}) {
    return this.#on(signal, async (session) =>
      told(await this.#changing(index, () => generations.rollBackGeneration(session, this.#schema, index))),
    )
  }

  dropGeneration(index: string, id: string, { signal }: contract.Call = {}) {
    return this.#on(signal, (session) =>
      this.#changing(index, () => generations.dropGeneration(session, this.#schema, index, id)),
    )
  }

  generations(index: string, { signal }: contract.Call = {}) {
    return this.#on(signal, async (session) => (await this.#list(session, index)).map(told))
  }

  probe({ signal }: contract.Call = {}): Promise<contract.Health> {
    return this.#on(signal, async (session) => {
      const [row] = await session.rows(
        `select current_setting('server_version') as version, count(*)::text from ${this.#schema}.generation`,
      )
      return { version: row?.version as string }
    })
  }

  async close(): Promise<void> {
    if (this.#ownPool !== undefined && !this.#ownPool.ended) await this.#ownPool.end()
  }

  #on<T>(signal: AbortSignal | undefined, work: (session: Session) => Promise<T>): Promise<T> {
    return withSession(this.#db, signal, work)
  }

  async #install(session: Session): Promise<void> {
    if (this.#installed) return
    await install(session, this.#schema)
    this.#installed = true
  }

  async #ask(session: Session, index: string) {
    const found = await generations.listGenerations(session, this.#schema, index)
    for (const { table } of found) this.#tables.add(table)
    return found
  }

  #list(session: Session, index: string) {
    return this.#known.now(index, () => this.#ask(session, index))
  }

  /** A generation of this index is about to change, or has. */
  async #changing<T>(index: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } finally {
      this.#known.changed(index)
    }
  }

  #reading<T>(
    index: string,
    { generation, signal }: contract.Read,
    work: (session: Session, generation: generations.PostgresGeneration) => Promise<T>,
  ): Promise<T> {
    checkIndexName(index)
    return this.#on(signal, async (session) => {
      const found = await this.#picked(session, index, generation)
      try {
        return await work(session, found)
      } catch (error) {
        // Dropped in between: whoever asks for the live one gets the one that is live now.
        if ((error as { code?: unknown }).code !== '42P01' || generation !== undefined) throw error
        return work(session, pick(await this.#list(session, index), index, undefined))
      }
    })
  }

  /** Not asked anew for every search; one that is not in the list may be new. */
  async #picked(session: Session, index: string, generation: string | undefined) {
    try {
      const known = await this.#known.list(index, () => this.#ask(session, index))
      return pick(known, index, generation)
    } catch {
      return pick(await this.#list(session, index), index, generation)
    }
  }

  /** Every generation hears every write, so that a new one misses nothing and an old one can return. */
  async #write(
    index: string,
    items: number,
    { generation, signal }: contract.Write,
    work: (session: Session, generation: generations.PostgresGeneration) => Promise<Outcome[]>,
  ): Promise<readonly Outcome[]> {
    if (items === 0) return []
    try {
      return await this.#on(signal, async (session) => {
        const all = await this.#list(session, index)
        const first = pick(all, index, generation)
        const others = generation === undefined ? all.filter((one) => one !== first) : []
        const outcomes = [await work(session, first)]
        for (const other of others) outcomes.push(await work(session, other))
        await this.#purge(session, all)
        return worstOf(outcomes)
      })
    } catch (error) {
      const outcome = outcomeOfSqlError(error, items)
      return Array.from({ length: items }, () => outcome)
    }
  }

  /** Now and then, in passing. */
  async #purge(session: Session, all: readonly generations.PostgresGeneration[]): Promise<void> {
    const nowMs = Date.now()
    if (nowMs - this.#purgedAt < purgeEveryMs) return
    this.#purgedAt = nowMs
    for (const generation of all) {
      await purgeTombstones(session, generation, this.#tombstonesMs).catch(() => {})
    }
  }
}

function ownPool({
  connectionString,
  connectionsMax,
}: {
  readonly connectionString: string | undefined
  readonly connectionsMax: number
}): pg.Pool {
  const pool = new pg.Pool({
    connectionString,
    max: connectionsMax,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    application_name: 'hermod-search',
  })
  // An idle connection that breaks is replaced when one is needed.
  pool.on('error', () => {})
  return pool
}
