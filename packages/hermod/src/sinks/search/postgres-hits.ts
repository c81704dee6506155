/**
 * The documents found: one statement for the page and the total. Ranking reads every document that
 * matches, so it looks at the first `countMax` of them, headings before texts.
 */
import type { ResolvedRequest } from './check-request.ts'
import { numberColumn, type PostgresGeneration } from './postgres-generations.ts'
import type { Asked } from './postgres-search.ts'
import type { Session } from './postgres-session.ts'
import { allSql, Params } from './postgres-where.ts'
import type { Hit } from './request.ts'

export interface FoundPage {
  readonly hits: readonly Hit[]
  /** Counted up to one more than `countMax`. */
  readonly total: number
}

/** Of weight 1 to 4, as PostgreSQL lists them: D, C, B, A. */
const WEIGHTS = `'{0.1, 0.2, 0.4, 1.0}'`

export async function findHits(
  session: Session,
  generation: PostgresGeneration,
  request: ResolvedRequest,
  asked: Asked,
): Promise<FoundPage> {
  const params = new Params()
  const ranked = asked.query !== undefined && request.sort.length === 0
  const page = ranked
    ? rankedSql(generation, request, asked, params)
    : sortedSql(generation, request, asked, params)
  const rows = await session.rows(
    `with page as materialized (${page})
     select p.id, p.version::text, p.score::text, p.total::text, d.source::text as json
       from page p left join ${generation.table} d on d.id = p.id order by p.place`,
    params.values,
  )
  const total = Number(rows[0]?.total ?? 0)
  return { total, hits: rows.filter(({ id }) => id !== null).map(hitOf) }
}

/** The rank of a match, and before it whether it needed no similar word. */
function rankedSql(
  { table, definition }: PostgresGeneration,
  request: ResolvedRequest,
  { query, exact }: Asked,
  params: Params,
): string {
  const of = (text: string) =>
    `to_tsquery('pg_catalog.${definition.language}', ${params.add(text)})`
  const wanted = of(query as string)
  const exactly = exact === undefined ? 'true' : `d.words @@ ${of(exact)}`
  const where = `not d.deleted${allSql(request.conditions, params)}`
  const max = params.add(request.countMax + 1)
  return `
    with matched as materialized (
      (select d.id from ${table} d where d.heading @@ ${wanted} and d.words @@ ${wanted} and ${where} limit ${max})
      union
      (select d.id from ${table} d where d.words @@ ${wanted} and ${where} limit ${max})),
    ranked as (
      select d.id, d.version, ${exactly} as exactly, ts_rank_cd(${WEIGHTS}, d.words, ${wanted}, 1) as score
        from matched join ${table} d using (id)),
    page as (select * from ranked order by exactly desc, score desc, id ${pageSql(request, params)})
    ${withTotal('page', `(select least(count(*), ${max}) from matched)`, 'p.exactly desc, p.score desc, p.id')}`
}

/** By declared fields, else newest first; documents without a value come last. */
function sortedSql(
  { table, definition }: PostgresGeneration,
  request: ResolvedRequest,
  { query }: Asked,
  params: Params,
): string {
  const sort = request.sort.map(({ field, ascending }) => {
    return `d.${numberColumn(field)} ${ascending ? 'asc' : 'desc'} nulls last`
  })
  const order = [...(sort.length > 0 ? sort : ['d.version desc']), 'd.id'].join(', ')
  const match =
    query === undefined
      ? ''
      : ` and d.words @@ to_tsquery('pg_catalog.${definition.language}', ${params.add(query)})`
  const where = `not d.deleted${match}${allSql(request.conditions, params)}`
  const max = params.add(request.countMax + 1)
  return `
    with page as (
      select d.id, d.version, 0::float4 as score, row_number() over (order by ${order}) as row
        from ${table} d where ${where} order by ${order} ${pageSql(request, params)}),
    counted as (select count(*) as n from (select from ${table} d where ${where} limit ${max}) c)
    ${withTotal('page', '(select n from counted)', 'p.row')}`
}

/** A page past the end, or of no rows, still says how many there are. */
function withTotal(page: string, total: string, order: string): string {
  return `select p.id, p.version, p.score, t.total, row_number() over (order by ${order}) as place
            from (select ${total} as total) t left join ${page} p on true`
}

function pageSql({ offset, limit }: ResolvedRequest, params: Params): string {
  return `offset ${params.add(offset)} limit ${params.add(limit)}`
}

function hitOf({ id, version, score, json }: Record<string, string | null>): Hit {
  return {
    ...{ id: id as string, version: BigInt(version as string), score: Number(score) },
    document: JSON.parse(json ?? '{}'),
    highlights: {},
  }
}

/** Only what the declaration displays, and what it does not know. */
export function displayed(
  { definition }: PostgresGeneration,
  document: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const hidden = new Set(definition.fields.filter((f) => !f.displayed).map(({ name }) => name))
  return Object.fromEntries(Object.entries(document).filter(([name]) => !hidden.has(name)))
}
