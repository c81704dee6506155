/**
 * Searching in Algolia: one call for hits and facets. A facet that is filtered is counted by a query
 * without its own filter. Algolia sorts only by what an index was built for, so other orders are made
 * here, from the numbers of everything that was found.
 */
import { refuse } from '../../../check-options.ts'
import type { Values } from '../check-document.ts'
import type { ResolvedRequest } from '../check-request.ts'
import type { Call } from '../engine.ts'
import { displayed } from '../items.ts'
import { parseQuery, type Term } from '../query.ts'
import type { FacetCount, Hit, SearchResult } from '../request.ts'
import { withoutStopWords } from '../stop-words.ts'
import type { AlgoliaAnswer, AlgoliaApi, AlgoliaHit, AlgoliaQuery } from './api.ts'
import { versionOf } from './document.ts'
import { highlightParams, highlightsOf, randomTags } from './highlight.ts'
import { type AskedFilters, type AskedWords, askedFilters, askedWords, facetParams, onlyIds } from './query.ts'
import { fieldPath, reachMax } from './schema.ts'
import type { AlgoliaGeneration } from './state.ts'

const pageMax = 1_000
/** Documents with a phrase that was excluded: so many are left out. */
const excludedMax = 1_000

export function searchIn(
  api: AlgoliaApi,
  generation: AlgoliaGeneration,
  request: ResolvedRequest,
  call: Call,
): Promise<SearchResult> {
  return new Search(api, generation, request, call).run()
}

class Search {
  readonly #api: AlgoliaApi
  readonly #generation: AlgoliaGeneration
  readonly #request: ResolvedRequest
  readonly #call: Call
  readonly #terms: readonly Term[]
  readonly #words: AskedWords
  readonly #tags = randomTags()
  #excludedIds: readonly string[] = []

  constructor(api: AlgoliaApi, generation: AlgoliaGeneration, request: ResolvedRequest, call: Call) {
    this.#api = api
    this.#generation = generation
    this.#request = request
    this.#call = call
    this.#terms = withoutStopWords(parseQuery(request.query), generation.definition.language)
    this.#words = askedWords(this.#terms)
  }

  async run(): Promise<SearchResult> {
    this.#excludedIds = await this.#findExcluded()
    const { facets, sort } = this.#request
    const own = facets.filter((name) => this.#isFiltered(name))
    const filters = this.#filters()
    const main = filters === undefined ? [] : [this.#mainQuery(filters, own)]
    const others = own.map((name) => this.#facetQuery(name))
    const asked = [...main, ...others.filter((one) => one !== undefined)]
    const answers = asked.length === 0 ? [] : [...(await this.#api.search(asked, this.#call))]
    const found = main.length === 0 ? NOTHING : (answers.shift() as AlgoliaAnswer)
    const ofOwn = others.map((one) => (one === undefined ? NOTHING : (answers.shift() as AlgoliaAnswer)))
    this.#refuseBeyond(found.nbHits)
    const hits = sort.length === 0 ? found.hits : await this.#sorted(found, filters)
    return this.#result(found, hits, new Map(own.map((name, at) => [name, ofOwn[at] ?? NOTHING])))
  }

  #query(filters: AskedFilters, more: object): AlgoliaQuery {
    const { query, queryType, optionalWords } = this.#words
    const words = { query, queryType, ...(optionalWords.length > 0 && { optionalWords }) }
    return { indexName: this.#generation.indexName, ...words, ...filters, ...more }
  }

  #mainQuery(filters: AskedFilters, own: readonly string[]): AlgoliaQuery {
    const { facets, offset, limit, sort } = this.#request
    const counted = facetParams(facets.filter((name) => !own.includes(name)))
    if (sort.length > 0) return this.#query(filters, { ...counted, ...numbersOnly(0) })
    return this.#query(filters, { ...counted, offset, length: limit, ...this.#shown() })
  }

  #shown(): object {
    const attributesToRetrieve = ['version', 'document']
    return {
      attributesToRetrieve,
      getRankingInfo: true,
      ...highlightParams(this.#fields(), this.#tags),
    }
  }

  #facetQuery(name: string): AlgoliaQuery | undefined {
    const filters = this.#filters(name)
    if (filters === undefined) return undefined
    return this.#query(filters, { ...facetParams([name]), ...unmarked, hitsPerPage: 0 })
  }

  #isFiltered(name: string): boolean {
    return this.#request.conditions.some(({ field }) => field.name === name)
  }

  #filters(besides?: string): AskedFilters | undefined {
    const { conditions } = this.#request
    const heeded = conditions.filter(({ field }) => field.name !== besides)
    return askedFilters(heeded, this.#excludedIds)
  }

  #fields() {
    const { fields } = this.#generation.definition
    return fields.filter(({ name }) => this.#request.highlights.includes(name))
  }

  async #findExcluded(): Promise<string[]> {
    const filters = this.#filters()
    const phrases = this.#words.excludedPhrases
    if (phrases.length === 0 || filters === undefined) return []
    const { indexName } = this.#generation
    const page = { length: excludedMax, offset: 0, attributesToRetrieve: ['objectID'], ...unmarked }
    const answers = await this.#api.search(
      phrases.map((query) => ({ indexName, query, queryType: 'prefixNone', ...filters, ...page })),
      this.#call,
    )
    return [...new Set(answers.flatMap(({ hits }) => hits.map(({ objectID }) => objectID)))]
  }

  #refuseBeyond(found: number): void {
    const { offset, limit, sort } = this.#request
    if (found <= reachMax) return
    const says = `reaches the first ${reachMax} of ${found} documents found in Algolia: narrow it by filters`
    if (sort.length > 0) refuse('search', [{ field: 'sort', says }])
    if (offset + limit > reachMax) refuse('search', [{ field: 'offset', says }])
  }

  /** All that was found, by number; then the page itself, as it is shown. */
  async #sorted(found: AlgoliaAnswer, filters: AskedFilters | undefined): Promise<AlgoliaHit[]> {
    const { offset, limit } = this.#request
    const all = [...found.hits, ...(await this.#rest(found.nbHits, filters))]
    const ids = all
      .sort(this.#order())
      .slice(offset, offset + limit)
      .map(({ objectID }) => objectID)
    if (ids.length === 0) return []
    const page = { offset: 0, length: ids.length, ...this.#shown() }
    const [answer] = await this.#api.search([this.#query(onlyIds(ids), page)], this.#call)
    const byId = new Map(answer?.hits.map((hit) => [hit.objectID, hit]))
    return ids.flatMap((id) => byId.get(id) ?? [])
  }

  async #rest(total: number, filters: AskedFilters | undefined): Promise<AlgoliaHit[]> {
    if (filters === undefined || total <= pageMax) return []
    const pages = Array.from({ length: Math.ceil(total / pageMax) - 1 }, (_, at) => (at + 1) * pageMax)
    const queries = pages.map((offset) => this.#query(filters, numbersOnly(offset)))
    return (await this.#api.search(queries, this.#call)).flatMap(({ hits }) => hits)
  }

  /** Documents without a value last, whichever way; ties by id. */
  #order(): (a: AlgoliaHit, b: AlgoliaHit) => number {
    const value = ({ numbers }: AlgoliaHit, field: string) => (numbers as Record<string, number> | undefined)?.[field]
    return (a, b) => {
      for (const { field, ascending } of this.#request.sort) {
        const [one, other] = [value(a, field), value(b, field)]
        if (one === other) continue
        if (one === undefined) return 1
        if (other === undefined) return -1
        return ascending ? one - other : other - one
      }
      return a.objectID < b.objectID ? -1 : 1
    }
  }

  #result(found: AlgoliaAnswer, hits: readonly AlgoliaHit[], own: ReadonlyMap<string, AlgoliaAnswer>): SearchResult {
    const { facets, countMax, offset } = this.#request
    const counted = facets.map((name) => ({ name, answer: own.get(name) ?? found }))
    return {
      hits: hits.map((hit, at) => this.#hit(hit, offset + at)),
      total: Math.min(found.nbHits, countMax),
      totalExact: found.nbHits <= countMax && found.exhaustive?.nbHits !== false,
      facets: Object.fromEntries(counted.map(({ name, answer }) => [name, countsOf(answer, name)])),
      facetsExact: counted.every(({ answer }) => {
        return answer.nbHits <= countMax && answer.exhaustive?.facetsCount !== false
      }),
      corrected: hits.length > 0 && hits.every(({ _rankingInfo: info }) => (info?.nbTypos ?? 0) > 0),
    }
  }

  /** Algolia gives an order and no number: the place is the score. */
  #hit(hit: AlgoliaHit, place: number): Hit {
    const { definition } = this.#generation
    return {
      id: hit.objectID,
      version: versionOf(hit),
      score: 1 / (place + 1),
      document: displayed(definition, (hit.document ?? {}) as Values),
      highlights: highlightsOf(hit, this.#fields(), this.#terms, this.#tags),
    }
  }
}

const NOTHING: AlgoliaAnswer = { hits: [], nbHits: 0 }
/** Not what a person searched for: neither marked nor counted in Algolia's analytics. */
const unmarked = { attributesToHighlight: [], analytics: false, clickAnalytics: false }

function numbersOnly(offset: number) {
  return { offset, length: pageMax, attributesToRetrieve: ['numbers'], ...unmarked }
}

function countsOf({ facets }: AlgoliaAnswer, name: string): FacetCount[] {
  return Object.entries(facets?.[fieldPath(name)] ?? {})
    .map(([value, count]) => ({ value, count }))
    .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
}
