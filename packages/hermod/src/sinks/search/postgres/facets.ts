/**
 * Values with their counts. A facet ignores its own filter, so that a person who chose one value
 * still sees the others.
 */
import type { Condition, ResolvedRequest } from '../check-request.ts'
import type { FacetCount } from '../request.ts'
import type { Session } from './api.ts'
import type { PostgresGeneration } from './generations.ts'
import type { Asked } from './query.ts'
import { allSql, conditionSql, matchSql, Params } from './where.ts'

export interface CountedFacets {
  readonly counts: Readonly<Record<string, readonly FacetCount[]>>
  readonly exact: boolean
}

const valuesMax = 100

export async function countFacets(
  session: Session,
  generation: PostgresGeneration,
  request: ResolvedRequest,
  asked: Asked,
): Promise<CountedFacets> {
  const counts: Record<string, FacetCount[]> = {}
  for (const name of request.facets) counts[name] = []
  if (request.facets.length === 0) return { counts, exact: true }
  const params = new Params()
  const rows = await session.rows(facetSql(generation, request, asked, params), params.values)
  let exact = true
  for (const { field, value, count, seen } of rows) {
    exact &&= Number(seen) <= request.countMax
    counts[field as string]?.push({ value: value as string, count: Number(count) })
  }
  return { counts, exact }
}

/** One pass over the documents: conditions on facets are columns, so each facet can skip its own. */
function facetSql(
  { table, definition }: PostgresGeneration,
  request: ResolvedRequest,
  asked: Asked,
  params: Params,
): string {
  const onFacets = request.conditions.filter(({ field }) => request.facets.includes(field.name))
  const others = request.conditions.filter((condition) => !onFacets.includes(condition))
  const match = matchSql(definition.language, asked, params)
  const flags = onFacets.map((one, at) => `, (${conditionSql(one, params)}) as c${at}`)
  return `
    with base as materialized (
      select d.keys ${flags.join('')} from ${table} d
       where not d.deleted and ${match}${allSql(others, params)} limit ${params.add(request.countMax + 1)}),
    counted as (
      select split_part(k, '=', 1) as field, substr(k, strpos(k, '=') + 1) as value, count(*) as n
        from base, unnest(keys) k
       where split_part(k, '=', 1) = any (${params.add(request.facets)}::text[]) and ${holding(request.facets, onFacets)}
       group by 1, 2),
    placed as (select *, row_number() over (partition by field order by n desc, value collate "C") as place from counted)
    select field, value, n::text as count, (select count(*) from base)::text as seen
      from placed where place <= ${valuesMax} order by field, place`
}

/** For a key of facet F: every condition on the other facets holds. */
function holding(facets: readonly string[], onFacets: readonly Condition[]): string {
  if (onFacets.length === 0) return 'true'
  const cases = facets.map((name) => {
    const rest = onFacets.flatMap(({ field }, at) => (field.name === name ? [] : [`c${at}`]))
    return `when '${name}' then ${rest.join(' and ') || 'true'}`
  })
  return `case split_part(k, '=', 1) ${cases.join(' ')} end`
}
