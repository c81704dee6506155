/**
 * Searching in PostgreSQL: what was typed first; when that finds little, once more with words that
 * are spelt alike. What was found exactly always stands first.
 */
import type { ResolvedRequest } from '../check-request.ts'
import { endsShort, finished, parseQuery, type Term } from '../query.ts'
import type { SearchResult } from '../request.ts'
import type { Session } from './api.ts'
import { countFacets } from './facets.ts'
import type { PostgresGeneration } from './generations.ts'
import { highlightHits } from './highlight.ts'
import { type FoundPage, findHits } from './hits.ts'
import { type Asked, type AskOptions, ask } from './query.ts'
import { nearWords } from './words.ts'

/** Below this many documents other ways are tried. */
const fewHits = 5

interface Found {
  readonly asked: Asked
  readonly page: FoundPage
}

/** One search in progress. */
interface Search {
  readonly session: Session
  readonly schema: string
  readonly generation: PostgresGeneration
  readonly request: ResolvedRequest
}

export async function searchIn(
  session: Session,
  schema: string,
  generation: PostgresGeneration,
  request: ResolvedRequest,
): Promise<SearchResult> {
  const search = { session, schema, generation, request }
  const terms = parseQuery(request.query)
  const typed = endsShort(terms) ? await findShort(search, terms) : await find(search, terms)
  return complete(search, (await findSimilar(search, typed)) ?? typed)
}

/**
 * One or two letters begin thousands of words, and listing the documents of all of them takes long:
 * alone they are looked for in headings, behind other words they count when they are a whole word.
 */
async function findShort(search: Search, terms: readonly Term[]): Promise<Found> {
  if (terms.length === 1) return find(search, terms, { wholeWords: true })
  const whole = await find(search, finished(terms))
  return whole.page.total > 0 ? whole : find(search, terms.slice(0, -1))
}

async function find(search: Search, terms: readonly Term[], options: AskOptions = {}): Promise<Found> {
  const { session, generation, request } = search
  const asked = ask(terms, options)
  const page = await findHits(session, generation, request, asked)
  if (page.total > 0 || !(await onlyStopWords(search, asked))) return { asked, page }
  const everything = { ...asked, query: undefined }
  return { asked: everything, page: await findHits(session, generation, request, everything) }
}

/** Undefined when enough was found, or when no similar words exist. */
async function findSimilar(search: Search, { asked, page }: Found): Promise<Found | undefined> {
  if (asked.query === undefined || page.total >= fewHits) return undefined
  const { session, schema, generation, request } = search
  const book = { session, schema, generation, conditions: request.conditions }
  const alternatives = new Map<string, readonly string[]>()
  for (const { words, excluded, unfinished } of asked.terms) {
    const [word, more] = words
    if (word === undefined || more !== undefined || excluded) continue
    const near = await nearWords(book, word, unfinished)
    if (near.length > 0) alternatives.set(word, near)
  }
  if (alternatives.size === 0) return undefined
  return find(search, asked.terms, { alternatives, exact: asked.query })
}

/** A query of stop words only finds nothing; it is treated as an empty query, which finds everything. */
async function onlyStopWords({ session, generation }: Search, { query }: Asked): Promise<boolean> {
  if (query === undefined) return false
  const [row] = await session.rows(
    `select numnode(to_tsquery('pg_catalog.${generation.definition.language}', $1))::text as nodes`,
    [query],
  )
  return row?.nodes === '0'
}

async function complete(search: Search, { asked, page }: Found): Promise<SearchResult> {
  const { session, generation, request } = search
  const facets = await countFacets(session, generation, request, asked)
  const hits = await highlightHits(session, generation, request, { asked, hits: page.hits })
  return {
    hits,
    total: Math.min(page.total, request.countMax),
    totalExact: page.total <= request.countMax,
    facets: facets.counts,
    facetsExact: facets.exact,
    corrected: asked.exact !== undefined,
  }
}
