/**
 * Searching in OpenSearch: first what was typed; if that finds little, once more with words that are spelt
 * alike. Exact matches always come first.
 */
import { endsShort, parseQuery, type Term } from '../query.ts'
import type { FacetCount, Hit, SearchResult } from '../request.ts'
import type { Found, FoundHit } from './api.ts'
import { taken } from './document.ts'
import { highlightHits } from './highlight.ts'
import { type Asked, canBeSimilar, type Search, searchBody } from './query.ts'

/** Below this many documents other ways are tried. */
const fewHits = 5

interface Answered {
  readonly asked: Asked
  readonly found: Found
}

export async function searchIn(search: Search): Promise<SearchResult> {
  const terms = parseQuery(search.request.query)
  const typed = await findTyped(search, terms)
  const answered = (await findSimilar(search, typed)) ?? typed
  return complete(search, answered)
}

/** One or two letters behind other words that lead nowhere are not waited for. */
async function findTyped(search: Search, terms: readonly Term[]): Promise<Answered> {
  const typed = await find(search, { terms, similar: false })
  const short = endsShort(terms) && terms.length > 1
  if (!short || totalOf(typed.found) > 0) return typed
  return find(search, { terms: terms.slice(0, -1), similar: false })
}

async function find({ api, generation, request, call }: Search, asked: Asked): Promise<Answered> {
  const body = searchBody(generation.definition, request, asked)
  return { asked, found: await api.search(generation.alias, body, call) }
}

/** Undefined when enough was found, or nothing more. */
async function findSimilar(search: Search, typed: Answered): Promise<Answered | undefined> {
  const total = totalOf(typed.found)
  const { terms } = typed.asked
  if (total >= fewHits || !canBeSimilar(terms)) return undefined
  const similar = await find(search, { terms, similar: true })
  return totalOf(similar.found) > total ? similar : undefined
}

const totalOf = ({ hits }: Found) => hits.total?.value ?? 0

async function complete(search: Search, { asked, found }: Answered): Promise<SearchResult> {
  const { countMax, facets } = search.request
  const total = totalOf(found)
  const totalExact = total <= countMax && found.hits.total?.relation !== 'gte'
  const hits = found.hits.hits.map(hitOf)
  return {
    hits: await highlightHits(search, asked, hits),
    total: Math.min(total, countMax),
    totalExact,
    facets: Object.fromEntries(facets.map((name) => [name, countsOf(found, name)])),
    facetsExact: totalExact && facets.every((name) => isExact(found, name)),
    corrected: asked.similar,
  }
}

function countsOf({ aggregations }: Found, name: string): FacetCount[] {
  const buckets = aggregations?.[name]?.values.buckets ?? []
  return buckets.map(({ key, doc_count: count }) => ({ value: key, count }))
}

/** Over several shards a count may miss some. */
function isExact({ aggregations }: Found, name: string): boolean {
  return (aggregations?.[name]?.values.doc_count_error_upper_bound ?? 0) === 0
}

function hitOf({ _id, _score, _source }: FoundHit): Hit {
  const { version, document } = taken(_source)
  return { id: _id, version, score: _score ?? 0, document, highlights: {} }
}
