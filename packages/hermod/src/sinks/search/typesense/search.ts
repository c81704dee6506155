/**
 * Searching in Typesense: the page, the total and every facet in one call; when nothing is found, once
 * more with words that are spelt alike. A facet that is filtered is a search of its own.
 */
import { refuse } from '../../../check-options.ts'
import { textsIn } from '../check-document.ts'
import type { ResolvedRequest } from '../check-request.ts'
import { wordsOf as foldedWords } from '../fold.ts'
import { highlight } from '../highlight.ts'
import { joined } from '../identifiers.ts'
import { displayed } from '../items.ts'
import type { FacetCount, HighlightPart, Hit, SearchResult } from '../request.ts'
import type { ApiCall, Found, FoundHit, SearchParameters, TypesenseApi } from './api.ts'
import { documentOf, storedDocument } from './document.ts'
import type { TypesenseGeneration } from './generations.ts'
import { type Asked, ask, filterOf, findsNothing, sortFieldsMax, sortOf, wordsOf } from './query.ts'
import { columnOf, hasStems, isColumn, own, unreadColumns } from './schema.ts'

const hitsMax = 250
const facetValuesMax = 100

interface Search {
  readonly generation: TypesenseGeneration
  readonly request: ResolvedRequest
  readonly asked: Asked
}

/** The searches of one call: pages of hits first, then the facets that ignore their own filter. */
interface Plan {
  readonly searches: readonly SearchParameters[]
  readonly pages: number
  readonly facets: readonly string[]
}

export async function searchIn(
  api: TypesenseApi,
  generation: TypesenseGeneration,
  request: ResolvedRequest,
  call: ApiCall,
): Promise<SearchResult> {
  if (request.sort.length > sortFieldsMax) {
    const says = `has more than ${sortFieldsMax} fields, which is all that Typesense sorts by`
    refuse(`search in ${generation.index}`, [{ field: 'sort', says }])
  }
  const search = { generation, request, asked: ask(generation.definition, request.query) }
  const exact = await run(api, search, { similar: false }, call)
  const retried = exact.main.found === 0 && search.asked.q !== '*' && !exact.closed
  const similar = retried ? await run(api, search, { similar: true }, call) : exact
  return resultOf(search, similar, retried && similar.main.found > 0)
}

interface Ran {
  /** The filter has no values, so nothing was asked. */
  readonly closed: boolean
  readonly main: Found
  readonly hits: readonly FoundHit[]
  readonly facets: ReadonlyMap<string, Found>
}

const NOTHING: Found = { found: 0, hits: [], facet_counts: [] }

async function run(api: TypesenseApi, search: Search, options: { similar: boolean }, call: ApiCall): Promise<Ran> {
  const closed = findsNothing(search.request.conditions)
  const plan = planOf(search, options, closed)
  const results = plan.searches.length === 0 ? [] : await api.multiSearch(plan.searches, call)
  const pages = results.slice(0, plan.pages)
  return {
    closed,
    main: pages[0] ?? NOTHING,
    hits: pages.flatMap(({ hits }) => hits),
    facets: new Map(plan.facets.map((name, at) => [name, results[plan.pages + at] ?? NOTHING])),
  }
}

function planOf(search: Search, options: { similar: boolean }, closed: boolean): Plan {
  const { generation, request, asked } = search
  const { definition, collection } = generation
  const words = wordsOf(definition, asked, options)
  const base = { collection, ...words, exclude_fields: unreadColumns(definition).join(',') }
  const others = (name: string) => request.conditions.filter(({ field }) => field.name !== name)
  const isFiltered = (name: string) => others(name).length < request.conditions.length
  const main = {
    ...base,
    sort_by: sortOf(request, asked),
    ...filterBy(filterOf(request.conditions)),
    ...highlightBy(search),
  }
  const shared = request.facets.filter((name) => !isFiltered(name))
  const pages = pagesOf(request).map((page, at) => {
    return { ...main, ...page, ...(at === 0 && facetBy(generation, shared)) }
  })
  const facets = request.facets.filter((name) => isFiltered(name) && !findsNothing(others(name)))
  const counts = facets.map((name) => {
    const filter = filterBy(filterOf(others(name)))
    return { ...base, ...filter, ...facetBy(generation, [name]), per_page: 0 }
  })
  const asking = closed ? [] : pages
  return { searches: [...asking, ...counts], pages: asking.length, facets }
}

/** At most 250 hits of one search; more are further searches of the same call. */
function pagesOf({ offset, limit }: ResolvedRequest): Record<string, number>[] {
  if (limit === 0) return [{ per_page: 0 }]
  const pages: Record<string, number>[] = []
  for (let at = 0; at < limit; at += hitsMax) {
    pages.push({ offset: offset + at, limit: Math.min(hitsMax, limit - at) })
  }
  return pages
}

const filterBy = (filter: string) => (filter === '' ? {} : { filter_by: filter })

function facetBy({ definition }: TypesenseGeneration, names: readonly string[]) {
  if (names.length === 0) return {}
  const columns = definition.fields.filter(({ name }) => names.includes(name)).map(columnOf)
  return { facet_by: columns.join(','), max_facet_values: facetValuesMax }
}

/** Which words were found is Typesense's to say, how they are shown is ours. */
function highlightBy({ generation, request, asked }: Search) {
  if (asked.q === '*') return {}
  const columns = generation.definition.fields
    .filter((field) => isColumn(field) && request.highlights.includes(field.name))
    .map(columnOf)
  if (columns.length === 0) return { highlight_fields: 'none' }
  const stems = hasStems(generation.definition) && !asked.phrases ? [own.stems] : []
  return { highlight_fields: [...columns, ...stems].join(',') }
}

function resultOf(search: Search, ran: Ran, corrected: boolean): SearchResult {
  const { generation, request } = search
  const { main, hits } = ran
  const [lowest = 0n] = hits.map(scoreOf).sort((a, b) => (a < b ? -1 : 1))
  const counted = request.facets.map((name) => [name, ran.facets.get(name) ?? main] as const)
  const whole = (found: Found) => found.found <= request.countMax && found.search_cutoff !== true
  return {
    hits: hits.map((hit) => hitOf(search, hit, Number(scoreOf(hit) - lowest))),
    total: Math.min(main.found, request.countMax),
    totalExact: whole(main),
    facets: Object.fromEntries(counted.map(([name, found]) => [name, countsOf(generation, name, found)])),
    facetsExact: counted.every(
      ([, found]) => whole(found) && found.facet_counts.every(({ sampled }) => sampled !== true),
    ),
    corrected,
  }
}

/** 64 bits: only the distance within a result fits into a number. */
const scoreOf = (hit: FoundHit | undefined) => BigInt(hit?.text_match_info?.score ?? 0)

function countsOf({ definition }: TypesenseGeneration, name: string, { facet_counts: facets }: Found): FacetCount[] {
  const field = definition.fields.find((one) => one.name === name)
  const column = field === undefined ? name : columnOf(field)
  const counts = facets.find(({ field_name }) => field_name === column)?.counts ?? []
  return counts
    .map(({ value, count }) => ({ value, count }))
    .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
}

function hitOf(search: Search, hit: FoundHit, score: number): Hit {
  const { definition } = search.generation
  const { id, version } = storedDocument(definition, hit.document, true)
  const document = documentOf(hit.document)
  const highlights = highlightsOf(search, hit, document)
  return { id, version, score, document: displayed(definition, document), highlights }
}

function highlightsOf(
  { generation, request, asked }: Search,
  { highlights = [] }: FoundHit,
  document: Readonly<Record<string, unknown>>,
): Record<string, HighlightPart[]> {
  const fields = generation.definition.fields.filter(({ name }) => request.highlights.includes(name))
  const parts = fields.flatMap((field) => {
    const text = textsIn(document[field.name]).join(' · ')
    if (text === '') return []
    const columns = [columnOf(field), own.stems]
    const matched = highlights.filter((one) => columns.includes(one.field))
    const found = finder(asked, matched.map(({ matched_tokens: tokens }) => tokens).flat(3))
    // `rfc051` finds RFC-051 as a whole, no word of it alone.
    const whole = field.kind === 'identifier' && found(joined(text))
    return [[field.name, whole ? [{ text, marked: true }] : highlight(text, found)] as const]
  })
  return Object.fromEntries(parts)
}

/** Words Typesense found, those that were typed, and those that begin with the one still typed. */
function finder({ words, unfinished }: Asked, matched: readonly unknown[]) {
  const found = new Set([...words, ...matched.map(String).flatMap(foldedWords)])
  const last = unfinished ? words.at(-1) : undefined
  return (spelling: string) => {
    const [word = '', more] = foldedWords(spelling)
    if (more !== undefined) return false
    return found.has(word) || (last !== undefined && word.startsWith(last))
  }
}
