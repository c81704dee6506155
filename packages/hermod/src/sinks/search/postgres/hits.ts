/** The documents found: one statement for the page and the total, which is counted up to a bound. */
import type { ResolvedRequest } from '../check-request.ts'
import type { Hit } from '../request.ts'
import type { Session } from './api.ts'
import type { PostgresGeneration } from './generations.ts'
import type { Asked } from './query.ts'
import { numberColumn } from './schema.ts'
import { allSql, matchSql, Params } from './where.ts'

export interface FoundPage {
  readonly hits: readonly Hit[]
  /** Counted up to one more than `countMax`. */
  readonly total: number
}

const rankedMax = 1_000

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
  const page = ranked ? rankedSql(generation, request, asked, params) : sortedSql(generation, request, asked, params)
  const rows = await session.rows(
    `with page as materialized (${page})
     select p.id, p.version::text, p.score::text, p.total::text, d.source::text as json
       from page p left join ${generation.table} d on d.id = p.id order by p.place`,
    params.values,
  )
  const total = Number(rows[0]?.total ?? 0)
  return { total, hits: rows.filter(({ id }) => id !== null).map(hitOf) }
}

/**
 * Ranking reads the whole tsvector of a document, so it is done for `rankedMax` whose heading
 * matches and for the `rankedMax` newest of the rest: 10,000 at once took ten times as long. When
 * there are no more than that, all of them are ranked and headings need no look of their own.
 */
function rankedSql(
  { table, definition }: PostgresGeneration,
  request: ResolvedRequest,
  asked: Asked,
  params: Params,
): string {
  const of = (text: string) => `to_tsquery('pg_catalog.${definition.language}', ${params.add(text)})`
  const { query, exact, plain } = asked
  const wanted = of(query as string)
  const exactly = exact === undefined ? 'true' : `d.words @@ ${of(exact)}`
  const where = `not d.deleted${allSql(request.conditions, params)}`
  const max = params.add(request.countMax + 1)
  // Words to exclude and phrases are only known from all of the text.
  const inHeading = `d.heading @@ ${wanted}${plain ? '' : ` and d.words @@ ${wanted}`}`
  const matches = matchSql(definition.language, asked, params)
  return `
    with matched as materialized (
      select d.id, d.version from ${table} d where ${matches} and ${where} limit ${max}),
    candidate as (
      (select d.id from ${table} d where ${inHeading} and ${where}
        limit (select case when count(*) > ${rankedMax} then ${rankedMax} else 0 end from matched))
      union
      (select id from matched order by version desc, id limit ${rankedMax})),
    ranked as (
      select d.id, d.version, ${exactly} as exactly, ts_rank_cd(${WEIGHTS}, d.words, ${wanted}, 1) as score
        from candidate join ${table} d using (id)),
    page as (select * from ranked order by exactly desc, score desc, id ${pageSql(request, params)})
    ${withTotal('page', '(select count(*) from matched)', 'p.exactly desc, p.score desc, p.id')}`
}

/** By declared fields, else newest first; documents without a value come last. */
function sortedSql(
  { table, definition }: PostgresGeneration,
  request: ResolvedRequest,
  asked: Asked,
  params: Params,
): string {
  const sort = request.sort.map(({ field, ascending }) => {
    return `d.${numberColumn(field)} ${ascending ? 'asc' : 'desc'} nulls last`
  })
  const order = [...(sort.length > 0 ? sort : ['d.version desc']), 'd.id'].join(', ')
  const match = matchSql(definition.language, asked, params)
  const where = `not d.deleted and ${match}${allSql(request.conditions, params)}`
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
    id: id as string,
    version: BigInt(version as string),
    score: Number(score),
    document: JSON.parse(json ?? '{}'),
    highlights: {},
  }
}
