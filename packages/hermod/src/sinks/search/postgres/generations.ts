/**
 * Generations in PostgreSQL: a table each, made from its declaration, and a row that says which one
 * is live. Swapping is one transaction; readers see the old one or the new one, never neither.
 *
 *   building ──swap──▶ live ──swap, roll back──▶ retired ──roll back──▶ live
 */
import type { Database } from '../../../database.ts'
import { HermodError } from '../../../errors.ts'
import type { ResolvedDefinition } from '../check-definition.ts'
import { compareDefinitions } from '../compare-definitions.ts'
import type { Call, EnsuredIndex, Generation } from '../engine.ts'
import { pick } from '../generations.ts'
import type { Generations, OwnGeneration } from '../shell.ts'
import { inTransaction, type Session, withSession } from './api.ts'
import { install, tableOf } from './schema.ts'

export interface PostgresGeneration extends OwnGeneration {
  /** Schema and name, quoted. */
  readonly table: string
  /** The words of its documents, for typing errors. */
  readonly wordTable: string
}

/** A new generation, before it has an id. */
interface Made {
  readonly definition: ResolvedDefinition
  readonly state: 'building' | 'live'
}

export class PostgresGenerations implements Generations<PostgresGeneration> {
  readonly #db: Database
  readonly #schema: string
  /** The list of generations. */
  readonly #list: string
  readonly #tables: Set<string>
  #installed = false

  constructor(db: Database, schema: string) {
    this.#db = db
    this.#schema = schema
    this.#list = `${schema}.generation`
    this.#tables = new Set([this.#list])
  }

  get tables(): readonly string[] {
    return [...this.#tables]
  }

  read(index: string, { signal }: Call): Promise<readonly PostgresGeneration[]> {
    return withSession(this.#db, signal, (session) => this.#read(session, index))
  }

  /** One process at a time for one index: the others wait and then find it. */
  async ensure(index: string, definition: ResolvedDefinition, { signal }: Call): Promise<EnsuredIndex> {
    return this.#change(signal, async (session) => {
      const lock = `${this.#schema}.${index}`
      await session.rows('select pg_advisory_xact_lock(hashtextextended($1, 4841297202))', [lock])
      const live = (await this.#read(session, index)).find(({ state }) => state === 'live')
      if (live !== undefined) return this.#compare(session, index, live, definition)
      return { generation: (await this.#make(session, index, { definition, state: 'live' })).id, state: 'created' }
    })
  }

  async #compare(
    session: Session,
    index: string,
    live: PostgresGeneration,
    definition: ResolvedDefinition,
  ): Promise<EnsuredIndex> {
    const change = compareDefinitions(live.definition, definition)
    if (change === 'none') return { generation: live.id, state: 'unchanged' }
    if (change === 'displayed') {
      const values = [live.id, JSON.stringify(definition)]
      await session.rows(`update ${this.#list} set definition = $2 where id = $1`, values)
      return { generation: live.id, state: 'updated' }
    }
    const [row] = await session.rows(`select exists (select from ${live.table})::text as used`)
    if (row?.used === 'true') return { generation: live.id, state: 'rebuild-needed' }
    await session.rows(`update ${this.#list} set state = 'retired' where id = $1`, [live.id])
    const { id } = await this.#make(session, index, { definition, state: 'live' })
    await this.#drop(session, index, live.id)
    return { generation: id, state: 'updated' }
  }

  create(index: string, definition: ResolvedDefinition, { signal }: Call): Promise<PostgresGeneration> {
    return this.#change(signal, (session) => this.#make(session, index, { definition, state: 'building' }))
  }

  async #make(session: Session, index: string, { definition, state }: Made): Promise<PostgresGeneration> {
    const [row] = await session
      .rows(
        `insert into ${this.#list} (index_name, state, definition, live_at)
         values ($1, $2, $3, case when $2 = 'live' then clock_timestamp() end) returning id::text`,
        [index, state, JSON.stringify(definition)],
      )
      .catch(refuseSecond(index, state))
    const id = row?.id as string
    for (const statement of tableOf(this.#namesOf(index, id), definition)) await session.rows(statement)
    return pick(await this.#read(session, index), index, id)
  }

  /**
   * Two swaps at once: the second waits for the first and finds nothing to swap. VACUUM first: after a
   * bulk load the planner would prefer to read the whole table.
   */
  swap(index: string, { signal }: Call): Promise<PostgresGeneration> {
    return withSession(this.#db, signal, async (session) => {
      const made = (await this.#read(session, index)).find(({ state }) => state === 'building')
      if (made !== undefined) {
        await session.rows(`vacuum (analyze) ${made.table}`)
        await session.rows(`vacuum (analyze) ${made.wordTable}`)
      }
      const next = `state = 'building'`
      return this.#changeLive(session, index, { next, missing: 'has no generation that is building' })
    })
  }

  rollBack(index: string, { signal }: Call): Promise<PostgresGeneration> {
    const next = `id = (select id from ${this.#list} where index_name = $1 and state = 'retired'
             order by live_at desc nulls last, id desc limit 1)`
    return withSession(this.#db, signal, (session) =>
      this.#changeLive(session, index, { next, missing: 'has no earlier generation to go back to' }),
    )
  }

  #changeLive(
    session: Session,
    index: string,
    { next, missing }: { readonly next: string; readonly missing: string },
  ): Promise<PostgresGeneration> {
    const list = this.#list
    return inTransaction(session, async () => {
      await session.rows(`select from ${list} where index_name = $1 for update`, [index])
      const [row] = await session.rows(`select id::text from ${list} where index_name = $1 and ${next}`, [index])
      if (row === undefined) throw new HermodError('HMD_SEARCH_GENERATION', `index ${index} ${missing}`)
      await session.rows(`update ${list} set state = 'retired' where index_name = $1 and state = 'live'`, [index])
      await session.rows(`update ${list} set state = 'live', live_at = clock_timestamp() where id = $1`, [row.id])
      return pick(await this.#read(session, index), index, undefined)
    })
  }

  drop(index: string, id: string, { signal }: Call): Promise<void> {
    return withSession(this.#db, signal, (session) => inTransaction(session, () => this.#drop(session, index, id)))
  }

  async #drop(session: Session, index: string, id: string): Promise<void> {
    const [row] = await session.rows(`delete from ${this.#list} where index_name = $1 and id = $2 returning state`, [
      index,
      id,
    ])
    if (row === undefined) return
    if (row.state === 'live') {
      const says = `generation ${id} of index ${index} is live and cannot be dropped`
      throw new HermodError('HMD_SEARCH_GENERATION', says)
    }
    const { table, wordTable } = this.#namesOf(index, id)
    await session.rows(`drop table if exists ${table}, ${wordTable}`)
  }

  /** In one transaction, after the schema was installed. */
  #change<T>(signal: AbortSignal | undefined, work: (session: Session) => Promise<T>): Promise<T> {
    return withSession(this.#db, signal, async (session) => {
      if (!this.#installed) await install(session, this.#schema)
      this.#installed = true
      return inTransaction(session, work)
    })
  }

  async #read(session: Session, index: string): Promise<PostgresGeneration[]> {
    const rows = await session.rows(
      `select id::text, state, definition::text, (extract(epoch from created_at) * 1000)::bigint::text as created
         from ${this.#list} g where index_name = $1 order by g.id`,
      [index],
    )
    const found = rows.map(({ id, state, definition, created }) => ({
      id: id as string,
      state: state as Generation['state'],
      createdAt: new Date(Number(created)),
      definition: JSON.parse(definition as string),
      ...this.#namesOf(index, id as string),
    }))
    for (const { table } of found) this.#tables.add(table)
    return found
  }

  #namesOf(index: string, id: string) {
    const name = `${index}_g${id}`
    return { table: `${this.#schema}."${name}"`, wordTable: `${this.#schema}."${name}_word"` }
  }
}

function refuseSecond(index: string, state: string) {
  return (error: unknown): never => {
    if ((error as { code?: string }).code !== '23505') throw error
    const says = `index ${index} already has a generation that is ${state}`
    throw new HermodError('HMD_SEARCH_GENERATION', says, { cause: error })
  }
}
