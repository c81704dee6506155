/**
 * Searching in Meilisearch: one call with a query for the page and one for each facet that has to
 * ignore its own filter. Every word must occur; total and facets are exact.
 */
import { randomBytes } from 'node:crypto'
import type { ResolvedField } from '../check-definition.ts'
import type { ResolvedRequest } from '../check-request.ts'
import type { Call } from '../engine.ts'
import { parseQuery, queryCharsMax, type Term } from '../query.ts'
import type { FacetCount, Hit, SearchResult } from '../request.ts'
import { stopWordsOf } from '../stop-words.ts'
import type { MeilisearchApi, MeilisearchDocument, SearchAnswer, SearchQuery } from './api.ts'
import { displayed, idOf, shownValue, versionOf } from './document.ts'
import { highlightsOf, type Tags } from './highlight.ts'
import { filterOf, isHopeless } from './query.ts'
import type { MeilisearchGeneration } from './registry.ts'
import { exactField, facetValuesMax, keyField, numericField } from './schema.ts'

export async function searchIn(
  api: MeilisearchApi,
  generation: MeilisearchGeneration,
  request: ResolvedRequest,
  call: Call,
): Promise<SearchResult> {
  const search = new Search(generation, request)
  const queries = search.queries()
  const answers = queries.length === 0 ? [] : await api.multiSearch(queries, call)
  return search.result(answers)
}

/** The parts of one request, each with its place among the queries; undefined: nothing to ask. */
interface Plan {
  readonly queries: SearchQuery[]
  readonly page: number | undefined
  readonly count: number | undefined
  readonly facets: ReadonlyMap<string, number>
}

class Search {
  readonly #generation: MeilisearchGeneration
  readonly #request: ResolvedRequest
  readonly #terms: readonly Term[]
  readonly #tags: Tags
  readonly #plan: Plan

  constructor(generation: MeilisearchGeneration, request: ResolvedRequest) {
    this.#generation = generation
    this.#request = request
    this.#terms = parseQuery(request.query)
    // Nobody can have written these into a document before the search was made.
    const secret = randomBytes(9).toString('hex')
    this.#tags = { before: `<${secret}>`, after: `</${secret}>` }
    this.#plan = this.#planned()
  }

  queries(): readonly SearchQuery[] {
    return this.#plan.queries
  }

  #planned(): Plan {
    const { conditions, facets, limit, offset } = this.#request
    const queries: SearchQuery[] = []
    const add = (query: SearchQuery) => queries.push(query) - 1
    const own = (name: string) => conditions.some(({ field }) => field.name === name)
    const counted = new Map<string, number>()
    let page: number | undefined
    let count: number | undefined
    if (!isHopeless(conditions)) {
      const shared = facets.filter((name) => !own(name))
      const base = { ...this.#base(conditions), ...facetsOf(shared) }
      // A page of its own size is found and counted in one go.
      const whole = limit > 0 && offset % limit === 0
      const size = whole ? { page: offset / limit + 1, hitsPerPage: limit } : { hitsPerPage: 0 }
      count = add({ ...base, ...(whole && this.#shown()), ...size })
      page = count
      if (!whole && limit > 0) {
        page = add({ ...this.#base(conditions), ...this.#shown(), offset, limit })
      }
      for (const name of shared) counted.set(name, count)
    }
    for (const name of facets.filter(own)) {
      const others = conditions.filter(({ field }) => field.name !== name)
      if (isHopeless(others)) continue
      counted.set(name, add({ ...this.#base(others), ...facetsOf([name]), hitsPerPage: 0 }))
    }
    return { queries, page, count, facets: counted }
  }

  #base(conditions: ResolvedRequest['conditions']): SearchQuery {
    const filter = filterOf(conditions)
    const q = this.#words()
    return {
      indexUid: this.#generation.uid,
      matchingStrategy: 'all',
      ...(q !== '' && { q }),
      ...(filter !== undefined && { filter }),
    }
  }

  /** What only the page needs. */
  #shown(): Partial<SearchQuery> {
    const { sort, highlights } = this.#request
    const { fields } = this.#generation.definition
    const by = sort.map(({ field: name, ascending }) => {
      const field = fields.find((one) => one.name === name) as ResolvedField
      return `${numericField(field)}:${ascending ? 'asc' : 'desc'}`
    })
    return {
      ...(by.length > 0 && { sort: [...by, `${keyField}:asc`] }),
      ...(highlights.length > 0 && {
        attributesToHighlight: highlights,
        highlightPreTag: this.#tags.before,
        highlightPostTag: this.#tags.after,
      }),
      showRankingScore: true,
      showRankingScoreDetails: true,
    }
  }

  /** Phrases and words to leave out are written alike there. Stop words alone find everything. */
  #words(): string {
    const stop = new Set(stopWordsOf(this.#generation.definition.language))
    const says = (term: Term) => term.excluded || term.unfinished || term.words.some((word) => !stop.has(word))
    if (!this.#terms.some(says)) return ''
    const cut = this.#request.query.slice(0, queryCharsMax).toWellFormed()
    return cut.replace(/\p{Cc}/gu, ' ')
  }

  result(answers: readonly SearchAnswer[]): SearchResult {
    const { page, count, facets } = this.#plan
    const { countMax } = this.#request
    const total = count === undefined ? 0 : (answers[count]?.totalHits ?? 0)
    const found = page === undefined ? [] : (answers[page]?.hits ?? [])
    const values = this.#request.facets.map((name) => {
      const at = facets.get(name)
      return [name, at === undefined ? [] : countsIn(answers[at], name)] as const
    })
    return {
      hits: found.map((document) => this.#hit(document)),
      total: Math.min(total, countMax),
      totalExact: total <= countMax,
      facets: Object.fromEntries(values),
      facetsExact: total <= countMax,
      corrected: found.length > 0 && found.every(hasTypos),
    }
  }

  #hit(document: MeilisearchDocument): Hit {
    const { definition } = this.#generation
    const fields = definition.fields.filter(({ name }) => this.#request.highlights.includes(name))
    const score = document._rankingScore
    return {
      id: idOf(document),
      version: versionOf(document),
      score: typeof score === 'number' ? score : 0,
      document: displayed(definition, document),
      highlights: highlightsOf(document, { fields, terms: this.#terms, tags: this.#tags }),
    }
  }
}

const facetsOf = (names: readonly string[]) => (names.length === 0 ? {} : { facets: names.map(exactField) })

function countsIn(answer: SearchAnswer | undefined, name: string): FacetCount[] {
  const counts = answer?.facetDistribution?.[exactField(name)] ?? {}
  return Object.entries(counts)
    .map(([value, count]) => ({ value: shownValue(value), count }))
    .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
    .slice(0, facetValuesMax)
}

function hasTypos({ _rankingScoreDetails: details }: MeilisearchDocument): boolean {
  const { typo } = (details ?? {}) as { typo?: { typoCount?: unknown } }
  return typeof typo?.typoCount === 'number' && typo.typoCount > 0
}
