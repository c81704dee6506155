/**
 * Compares a source with what a search in its index would show: (id, hash) of both sides go into temporary
 * tables, one join finds what differs. Memory does not grow with the index. What differs is looked at again after the
 * subscription has passed the moment of the first look, so that an edit on its way is no drift.
 */
import { type Database, type PoolClient, select } from '../database.ts'
import { documentHash } from '../sinks/search/document-hash.ts'
import type { DeclaredIndex } from './declared-index.ts'
import type { SourceRows } from './source.ts'

export const kinds = ['missing', 'orphaned', 'stale'] as const
export type Difference = (typeof kinds)[number]

export interface Compared {
  /** Documents on either side. */
  readonly source: number
  readonly indexed: number
  readonly missing: number
  readonly orphaned: number
  readonly stale: number
  /** Still changing; cannot be judged yet. */
  readonly moving: number
  /** Rows that cannot be turned into a document. */
  readonly refused: number
  readonly examples: Readonly<Record<Difference, readonly string[]>>
}

export interface Looking {
  readonly db: Database
  readonly index: DeclaredIndex
  /** The live one when left out. */
  readonly generation?: string | undefined
  /** Believes the hashes that are stored in the index: what was changed there by hand is not seen. */
  readonly fast: boolean
  /** Throws when the work must stop. */
  look(): void
  /** Calls the engine, and waits while it is in trouble. */
  call<T>(work: (call: { readonly signal: AbortSignal }) => Promise<T>): Promise<T>
  /** Waits until the subscription has delivered everything committed before the call. */
  passed(): Promise<void>
  /** Documents looked at so far. */
  tell(looked: number): Promise<void>
}

const sourceRows = 1_000
const scanRows = 2_000
const againRows = 500
const getsAtOnce = 8
const roundsMax = 4
/** With more differences than this, both sides are read again as a whole. */
const getsMax = 5_000
const examplesMax = 10

/** Temporary tables in the caller's session. */
const TABLES = `
  create temporary table hermod_source (id text collate "C", hash text) on commit preserve rows;
  create temporary table hermod_indexed (id text collate "C", hash text, version text) on commit preserve rows;
  create temporary table hermod_open (id text collate "C", source text, indexed text, version text) on commit preserve rows;
  create temporary table hermod_found (id text collate "C", kind text) on commit preserve rows`
const DROP = 'drop table if exists hermod_source, hermod_indexed, hermod_open, hermod_found'
const ADD_SOURCE = 'insert into hermod_source select * from unnest($1::text[], $2::text[]) as u(id, hash)'
const ADD_INDEXED =
  'insert into hermod_indexed select * from unnest($1::text[], $2::text[], $3::text[]) as u(id, hash, version)'
const DIFFERENT = `select coalesce(s.id, i.id) as id, s.hash as source, i.hash as indexed, i.version
  from hermod_source s full join hermod_indexed i on i.id = s.id where s.hash is distinct from i.hash`
/** A difference counts when it was seen twice, with everything delivered in between. */
const FIND_SAME = `with again as (${DIFFERENT}),
  same as (delete from hermod_open o using again a where a.id = o.id and a.source is not distinct from o.source
      and a.indexed is not distinct from o.indexed and a.version is not distinct from o.version returning o.*),
  gone as (delete from hermod_open o where not exists (select from again a where a.id = o.id))
  insert into hermod_found select id, case when indexed is null then 'missing' when source is null then 'orphaned' else 'stale' end from same`
const REMEMBER = `update hermod_open o set source = a.source, indexed = a.indexed, version = a.version
  from (${DIFFERENT}) a where a.id = o.id`

export class Comparison {
  readonly #on: Looking
  readonly #client: PoolClient
  #looked = 0
  #refused = 0

  private constructor(on: Looking, client: PoolClient) {
    this.#on = on
    this.#client = client
  }

  /** `work` can read what was found; afterwards the tables are dropped. */
  static async with<T>(on: Looking, work: (comparison: Comparison) => Promise<T>): Promise<T> {
    const client = await on.db.connect()
    let broken: Error | undefined
    const onError = (error: Error) => {
      broken = error
    }
    client.on('error', onError)
    try {
      await client.query(`${DROP};${TABLES}`)
      return await work(new Comparison(on, client))
    } finally {
      await client.query(DROP).catch((error: Error) => {
        broken ??= error
      })
      client.removeListener('error', onError)
      client.release(broken)
    }
  }

  /** Everything on both sides. */
  async all(): Promise<Compared> {
    await this.#readBoth()
    await this.#sql(`insert into hermod_open ${DIFFERENT}`)
    const counts = await this.#counts()
    await this.#again()
    return this.#result(counts)
  }

  /** Compares a random sample: this many rows of the source and as many documents of the index. */
  async sample(count: number): Promise<Compared> {
    const { index, db } = this.#on
    const ids = await index.source.sample(db, count)
    const { documents } = await this.#scan({ limit: Math.min(count, scanRows) })
    const all = [...new Set([...ids, ...documents.map(({ id }) => id)])]
    // A hash that equals no other: the second look decides about each of these.
    await this.#sql(`insert into hermod_open select u.id, '', '', '' from unnest($1::text[]) as u(id)`, [all])
    await this.#settleOpen(true)
    await this.#again(Number.MAX_SAFE_INTEGER)
    return this.#result({ source: ids.length, indexed: documents.length })
  }

  /** Ids that differ, a page at a time. */
  async found(after = '', limit = 1_000): Promise<{ id: string; kind: Difference }[]> {
    const rows = await this.#sql('select id, kind from hermod_found where id > $1 order by id limit $2', [after, limit])
    return rows as { id: string; kind: Difference }[]
  }

  /** Looks again at the differences, after a repair. */
  async check(): Promise<Compared> {
    await this.#sql(`insert into hermod_open select id, null, null, null from hermod_found`)
    await this.#sql('truncate hermod_found')
    await this.#again()
    return this.#result(await this.#counts())
  }

  async #readBoth(): Promise<void> {
    await this.#sql('truncate hermod_source, hermod_indexed')
    this.#refused = 0
    await Promise.all([this.#readSource(), this.#readIndex()])
    await this.#sql('analyze hermod_source, hermod_indexed')
  }

  async #readSource(): Promise<void> {
    const { index, db } = this.#on
    let after: string | undefined
    do {
      const page = await index.source.page(db, { after, limit: sourceRows })
      const hashes = this.#hashesOf(page)
      this.#refused += page.refused.length
      await this.#sql(ADD_SOURCE, [[...hashes.keys()], [...hashes.values()]])
      await this.#count(page.rows)
      after = page.next
    } while (after !== undefined)
  }

  async #readIndex(): Promise<void> {
    let after: string | undefined
    do {
      const page = await this.#scan({ limit: scanRows, ...(after !== undefined && { after }) })
      const column = <T>(of: (one: (typeof page.documents)[number]) => T) => page.documents.map(of)
      await this.#sql(ADD_INDEXED, [
        column(({ id }) => id),
        column(({ hash }) => hash),
        column(({ version }) => String(version)),
      ])
      await this.#count(page.documents.length)
      after = page.next
    } while (after !== undefined)
  }

  #scan(page: { readonly limit: number; readonly after?: string }) {
    const { index, generation, fast, call } = this.#on
    const at = generation === undefined ? { fast } : { fast, generation }
    return call((options) => index.engine.scan(index.name, { ...options, ...at, ...page }))
  }

  /** Repeats until nothing is open, or until the rest keeps changing. */
  async #again(oneByOneMax = getsMax): Promise<void> {
    for (let round = 1; round <= roundsMax; round++) {
      const open = Number((await this.#sql('select count(*)::text as n from hermod_open'))[0]?.n)
      if (open === 0) return
      await this.#on.passed()
      if (open <= oneByOneMax) await this.#settleOpen(false)
      else {
        await this.#readBoth()
        await this.#sql(FIND_SAME)
        await this.#sql(REMEMBER)
      }
    }
  }

  /** One by one. What still differs in the same way as before is a finding. */
  async #settleOpen(first: boolean): Promise<void> {
    let after = ''
    for (;;) {
      const open = await this.#sql('select id, source, indexed from hermod_open where id > $1 order by id limit $2', [
        after,
        againRows,
      ])
      const last = open.at(-1)
      if (last === undefined) return
      after = last.id as string
      await this.#settlePage(open, first)
      await this.#count(first ? open.length : 0)
    }
  }

  async #settlePage(open: readonly Record<string, string | null>[], first: boolean) {
    const { index, db } = this.#on
    const ids = open.map(({ id }) => id as string)
    const indexed = await this.#hashesInIndex(ids)
    const rows = await index.source.find(db, ids)
    const inSource = this.#hashesOf(rows)
    if (first) this.#refused += rows.refused.length
    const equal: string[] = []
    const found = new Map<string, Difference>()
    const moved: [id: string, source: string | null, indexed: string | null][] = []
    for (const before of open) {
      const id = before.id as string
      const now = { source: inSource.get(id) ?? null, indexed: indexed.get(id) ?? null }
      if (now.source === now.indexed) equal.push(id)
      else if (!first && now.source === before.source && now.indexed === before.indexed) {
        found.set(id, kindOf(now))
      } else moved.push([id, now.source, now.indexed])
    }
    await this.#sql('delete from hermod_open where id = any ($1::text[])', [[...equal, ...found.keys()]])
    await this.#sql('insert into hermod_found select * from unnest($1::text[], $2::text[])', [
      [...found.keys()],
      [...found.values()],
    ])
    await this.#sql(
      `update hermod_open o set source = u.source, indexed = u.indexed
         from unnest($1::text[], $2::text[], $3::text[]) as u(id, source, indexed) where u.id = o.id`,
      [moved.map(([id]) => id), moved.map(([, one]) => one), moved.map(([, , one]) => one)],
    )
  }

  async #hashesInIndex(ids: readonly string[]): Promise<Map<string, string>> {
    const { index, generation, fast, call } = this.#on
    const at = generation === undefined ? { fast } : { fast, generation }
    const hashes = new Map<string, string>()
    const left = ids.values()
    const work = async () => {
      for (const id of left) {
        this.#on.look()
        const stored = await call((options) => index.engine.get(index.name, id, { ...options, ...at }))
        if (stored !== undefined) hashes.set(id, stored.hash)
      }
    }
    await Promise.all(Array.from({ length: getsAtOnce }, work))
    return hashes
  }

  /** Rows that cannot be turned into a document are left out. */
  #hashesOf({ documents }: SourceRows): Map<string, string> {
    const { engine, definition } = this.#on.index
    return new Map(
      documents.map(({ id, json }) => {
        const document = JSON.parse(json)
        const shown = this.#on.fast ? document : (engine.givesBack?.(document, definition) ?? document)
        return [id, documentHash(shown)]
      }),
    )
  }

  async #counts(): Promise<{ source: number; indexed: number }> {
    const [row] = await this.#sql(
      `select (select count(*) from hermod_source)::text as source, (select count(*) from hermod_indexed)::text as indexed`,
    )
    return { source: Number(row?.source), indexed: Number(row?.indexed) }
  }

  async #result(counts: { source: number; indexed: number }): Promise<Compared> {
    const rows = await this.#sql('select kind, count(*)::text as n from hermod_found group by kind')
    const [open] = await this.#sql('select count(*)::text as n from hermod_open')
    const of = (kind: Difference) => rows.find((row) => row.kind === kind)
    const examples = await this.#examples()
    return {
      ...counts,
      missing: Number(of('missing')?.n ?? 0),
      orphaned: Number(of('orphaned')?.n ?? 0),
      stale: Number(of('stale')?.n ?? 0),
      moving: Number(open?.n),
      refused: this.#refused,
      examples,
    }
  }

  async #examples(): Promise<Record<Difference, string[]>> {
    const examples: Record<Difference, string[]> = { missing: [], orphaned: [], stale: [] }
    const rows = await this.#sql(
      `select k.kind, f.id from unnest($1::text[]) as k(kind) cross join lateral
         (select id from hermod_found f where f.kind = k.kind order by id limit ${examplesMax}) f`,
      [kinds],
    )
    for (const { kind, id } of rows) examples[kind as Difference].push(id as string)
    return examples
  }

  async #count(looked: number): Promise<void> {
    this.#on.look()
    this.#looked += looked
    await this.#on.tell(this.#looked)
  }

  #sql(text: string, values: readonly (string | number | readonly unknown[])[] = []) {
    return select(this.#client, text, values)
  }
}

function kindOf({ source, indexed }: { source: string | null; indexed: string | null }): Difference {
  if (indexed === null) return 'missing'
  return source === null ? 'orphaned' : 'stale'
}
