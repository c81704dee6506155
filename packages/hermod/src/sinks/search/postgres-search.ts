/**
 * Searching in PostgreSQL: the exact query first; when it finds little, once more with words that
 * are spelt alike. What was found exactly always stands first.
 */
import type { ResolvedRequest } from './check-request.ts'
import { countFacets } from './postgres-facets.ts'
import type { PostgresGeneration } from './postgres-generations.ts'
import { highlightHits } from './postgres-highlight.ts'
import { type FoundPage, findHits } from './postgres-hits.ts'
import { type Alternatives, tsquery } from './postgres-query.ts'
import type { Session } from './postgres-session.ts'
import { nearWords } from './postgres-words.ts'
import { parseQuery, type Term } from './query.ts'
import type { SearchResult } from './request.ts'

/** Below this many documents similar words are searched too. */
const fewHits = 5

/** What is searched for, as PostgreSQL understands it. */
export interface Asked {
  readonly terms: readonly Term[]
  readonly alternatives: Alternatives
  /** The text of a tsquery; undefined: no word to search for, everything is found. */
  readonly query: string | undefined
  /** The same without similar words, when there are any. */
  readonly exact: string | undefined
}

export async function searchIn(
  session: Session,
  schema: string,
  generation: PostgresGeneration,
  request: ResolvedRequest,
): Promise<SearchResult> {
  let asked = await asWritten(session, generation, parseQuery(request.query))
  let page = await findHits(session, generation, request, asked)
  if (asked.query !== undefined && page.total < fewHits) {
    const wider = await withSimilar(session, schema, generation, asked)
    if (wider !== undefined) {
      asked = wider
      page = await findHits(session, generation, request, asked)
    }
  }
  return complete(session, generation, request, { asked, page })
}

async function complete(
  session: Session,
  generation: PostgresGeneration,
  request: ResolvedRequest,
  { asked, page }: { asked: Asked; page: FoundPage },
): Promise<SearchResult> {
  const facets = await countFacets(session, generation, request, asked)
  const hits = await highlightHits(session, generation, request, { asked, hits: page.hits })
  const total = Math.min(page.total, request.countMax)
  return {
    ...{ hits, total, totalExact: page.total <= request.countMax },
    facets: facets.counts,
    facetsExact: facets.exact,
    corrected: asked.exact !== undefined,
  }
}

/** Stop words alone find everything, as if nothing had been typed. */
async function asWritten(
  session: Session,
  generation: PostgresGeneration,
  terms: readonly Term[],
): Promise<Asked> {
  const text = tsquery(terms)
  const none = { terms, alternatives: new Map(), query: undefined, exact: undefined }
  if (text === '') return none
  const [row] = await session.rows(
    `select numnode(to_tsquery('pg_catalog.${generation.definition.language}', $1))::text as nodes`,
    [text],
  )
  return row?.nodes === '0' ? none : { ...none, query: text }
}

/** Undefined when no word is like one of those typed. */
async function withSimilar(
  session: Session,
  schema: string,
  generation: PostgresGeneration,
  asked: Asked,
): Promise<Asked | undefined> {
  const alternatives = new Map<string, readonly string[]>()
  for (const { words, excluded, unfinished } of asked.terms) {
    const [word, more] = words
    if (word === undefined || more !== undefined || excluded) continue
    const near = await nearWords(session, schema, generation, word, unfinished)
    if (near.length > 0) alternatives.set(word, near)
  }
  if (alternatives.size === 0) return undefined
  const query = tsquery(asked.terms, alternatives)
  return { terms: asked.terms, alternatives, query, exact: asked.query }
}
