/**
 * PostgreSQL as a search engine: a schema of its own, in the database of the outbox or in another one.
 * Written asynchronously, retried and replayed like any other engine. An older version never wins.
 */
import pg from 'pg'
import { checkOptions, having, integer, optional, refuse, secret, text } from '../../check-options.ts'
import type { Database } from '../../database.ts'
import type { Capabilities } from '../sink.ts'
import type { ResolvedRequest } from './check-request.ts'
import type { Call, Deletion, Health, ScanPage, Upsert } from './engine.ts'
import { displayed } from './items.ts'
import { type Session, withSession } from './postgres/api.ts'
import { type PostgresGeneration, PostgresGenerations } from './postgres/generations.ts'
import { outcomeOfSqlError } from './postgres/outcomes.ts'
import { columns, hashed, scanIn } from './postgres/scan.ts'
import { searchIn } from './postgres/search.ts'
import { PostgresWriter } from './postgres/write.ts'
import { EngineShell, type Looking } from './shell.ts'

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
/** A search may use the generation that was live this long ago: it still gets every write. */
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

export class PostgresSearch extends EngineShell<PostgresGeneration> {
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
  readonly #generations: PostgresGenerations
  readonly #writer: PostgresWriter

  constructor(given: PostgresSearchOptions) {
    const options = checkOptions('postgresSearch', given, optionSpec)
    if ((options.pool === undefined) === (options.connectionString === undefined)) {
      refuse('postgresSearch', [{ field: 'pool', says: 'or connectionString must be given' }])
    }
    const own = options.connectionString === undefined ? undefined : ownPool(options)
    const db = (options.pool ?? own) as unknown as Database
    const schema = options.schema ?? 'search'
    const generations = new PostgresGenerations(db, schema)
    super(generations, listedMs)
    this.#db = db
    this.#ownPool = own
    this.#schema = schema
    this.#generations = generations
    this.#writer = new PostgresWriter(db, options.tombstonesMs)
  }

  /** The tables seen so far. Generations come and go. */
  get tables(): readonly string[] {
    return this.#generations.tables
  }

  protected upserting(documents: readonly Upsert[]) {
    return this.#writer.upserting(documents)
  }

  protected deleting(documents: readonly Deletion[]) {
    return this.#writer.deleting(documents)
  }

  protected searchIn(generation: PostgresGeneration, request: ResolvedRequest, call: Call) {
    return this.#on(call, (session) => searchIn(session, this.#schema, generation, request))
  }

  protected getFrom(generation: PostgresGeneration, id: string, call: Looking) {
    return this.#on(call, async (session) => {
      const { table, definition } = generation
      const [row] = await session.rows(`select ${columns(generation)} from ${table} where id = $1 and not deleted`, [
        id,
      ])
      if (row === undefined) return undefined
      const document = displayed(definition, JSON.parse(row.json as string))
      const [found] = call.fast ? [] : await hashed(session, generation, [row])
      return { id, version: BigInt(row.version as string), hash: found?.hash ?? (row.hash as string), document }
    })
  }

  protected countIn({ table }: PostgresGeneration, call: Call) {
    return this.#on(call, async (session) => {
      const [row] = await session.rows(`select count(*)::text as n from ${table} where not deleted`)
      return Number(row?.n)
    })
  }

  protected scanIn(generation: PostgresGeneration, page: ScanPage, call: Call) {
    return this.#on(call, (session) => scanIn(session, generation, page))
  }

  protected isMissing(error: unknown): boolean {
    return (error as { code?: unknown } | undefined)?.code === '42P01'
  }

  protected outcomeOf = outcomeOfSqlError

  probe(call: Call = {}): Promise<Health> {
    return this.#on(call, async (session) => {
      const [row] = await session.rows(
        `select current_setting('server_version') as version, count(*)::text from ${this.#schema}.generation`,
      )
      return { version: row?.version as string }
    })
  }

  async close(): Promise<void> {
    if (this.#ownPool !== undefined && !this.#ownPool.ended) await this.#ownPool.end()
  }

  #on<T>({ signal }: Call, work: (session: Session) => Promise<T>): Promise<T> {
    return withSession(this.#db, signal, work)
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
