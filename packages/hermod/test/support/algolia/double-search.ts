/**
 * Searching in the double of Algolia: all words must match, records are ordered by the ranking
 * criteria one after the other, and answers have the documented shape. No geo search, no rules, no
 * synonyms, no distinct, no personalisation; settings that belong to those are kept and ignored.
 */
import { bareName, type FilterParams, filterOf, valuesAt } from './double-filters.ts'
import { highlightsOf } from './double-highlight.ts'
import {
  holdsPhrase,
  type ParsedQuery,
  parseQuery,
  type QueryOptions,
  type QueryWord,
  typosBetween,
  type Word,
  wordsIn,
} from './double-words.ts'

export interface AlgoliaRecord {
  readonly objectID: string
  readonly [attribute: string]: unknown
}

export interface Settings extends QueryOptions {
  readonly searchableAttributes?: readonly string[]
  readonly attributesForFaceting?: readonly string[]
  readonly unretrievableAttributes?: readonly string[]
  readonly disableTypoToleranceOnAttributes?: readonly string[]
  readonly ranking?: readonly string[]
  readonly customRanking?: readonly string[]
  readonly paginationLimitedTo?: number
  readonly maxValuesPerFacet?: number
  readonly userData?: unknown
  readonly [setting: string]: unknown
}

export interface SearchParams extends QueryOptions, FilterParams {
  readonly query?: string
  readonly page?: number
  readonly hitsPerPage?: number
  readonly offset?: number
  readonly length?: number
  readonly facets?: readonly string[]
  readonly attributesToRetrieve?: readonly string[]
  readonly attributesToHighlight?: readonly string[]
  readonly highlightPreTag?: string
  readonly highlightPostTag?: string
  readonly getRankingInfo?: boolean
}

/** How one word was found: the fewest typing errors, then the attribute of the highest rank. */
interface Match {
  readonly typos: number
  readonly attribute: number
  readonly place: number
  readonly exact: boolean
}

export interface Found {
  readonly record: AlgoliaRecord
  readonly matches: readonly Match[]
}

const RANKING = ['typo', 'geo', 'words', 'filters', 'proximity', 'attribute', 'exact', 'custom']

export function search(
  name: string,
  records: Iterable<AlgoliaRecord>,
  settings: Settings,
  params: SearchParams,
): object {
  const options = { ...settings, ...params }
  const passes = filterOf(params, settings.attributesForFaceting ?? [])
  const query = parseQuery(params.query ?? '', options)
  const found: Found[] = []
  for (const record of records) {
    if (!passes(record)) continue
    const matches = matchesOf(record, query, options)
    if (matches !== undefined) found.push({ record, matches })
  }
  const kept = options.typoTolerance === 'min' ? fewestTypos(found) : found
  kept.sort(orderOf(settings))
  return answerOf(name, kept, query, options, params)
}

/** What `browse` gives: no ranking but the custom one. */
export function browse(records: Iterable<AlgoliaRecord>, settings: Settings, params: SearchParams): AlgoliaRecord[] {
  const passes = filterOf(params, settings.attributesForFaceting ?? [])
  return Array.from(records)
    .filter(passes)
    .map((record) => retrieved(record, settings, params.attributesToRetrieve))
}

function answerOf(
  name: string,
  found: readonly Found[],
  query: ParsedQuery,
  options: Settings & SearchParams,
  params: SearchParams,
): object {
  const { hitsPerPage = 20, page = 0, paginationLimitedTo = 1_000 } = options
  const paged = params.length === undefined
  const from = paged ? page * hitsPerPage : (params.offset ?? 0)
  const to = Math.min(from + (paged ? hitsPerPage : (params.length ?? 0)), paginationLimitedTo)
  const hits = found.slice(from, Math.max(from, to)).map((one) => hitOf(one, query, options))
  const reachable = Math.min(found.length, paginationLimitedTo)
  return {
    hits,
    nbHits: found.length,
    index: name,
    query: params.query ?? '',
    ...(paged
      ? { page, hitsPerPage, nbPages: hitsPerPage === 0 ? 0 : Math.ceil(reachable / hitsPerPage) }
      : { offset: from, length: params.length }),
    ...(params.facets && { facets: facetsOf(found, params.facets, options) }),
    exhaustive: { facetsCount: true, facetValues: true, nbHits: true, typo: true },
    exhaustiveFacetsCount: true,
    exhaustiveNbHits: true,
    exhaustiveTypo: true,
    params: '',
    processingTimeMS: 1,
    renderingContent: {},
  }
}

function hitOf({ record, matches }: Found, query: ParsedQuery, options: Settings & SearchParams) {
  const nbTypos = matches.reduce((sum, { typos }) => sum + typos, 0)
  return {
    ...retrieved(record, options, options.attributesToRetrieve),
    _highlightResult: highlightsOf(record, query, options),
    ...(options.getRankingInfo && {
      _rankingInfo: {
        nbTypos,
        firstMatchedWord: Math.min(...matches.map(({ attribute }) => attribute), 0),
        proximityDistance: proximity(matches),
        userScore: 0,
        geoDistance: 0,
        filters: 0,
        geoPrecision: 1,
        nbExactWords: matches.filter(({ exact }) => exact).length,
        words: matches.length,
      },
    }),
  }
}

/** `*` is everything but what may not be retrieved. */
export function retrieved(
  record: AlgoliaRecord,
  { unretrievableAttributes = [] }: Settings,
  wanted: readonly string[] = ['*'],
): AlgoliaRecord {
  const copy = structuredClone(record) as Record<string, unknown>
  if (!wanted.includes('*')) {
    const tops = new Set(wanted.map((path) => path.split('.')[0]))
    for (const key of Object.keys(copy)) if (!tops.has(key)) delete copy[key]
  }
  for (const path of unretrievableAttributes) remove(copy, path.split('.'))
  return { ...copy, objectID: record.objectID }
}

function remove(target: unknown, [key = '', ...rest]: readonly string[]): void {
  if (typeof target !== 'object' || target === null) return
  if (rest.length > 0) remove((target as Record<string, unknown>)[key], rest)
  else delete (target as Record<string, unknown>)[key]
}

/** `a, unordered(b)` in one entry rank alike. */
export function attributeGroups({ searchableAttributes = [] }: Settings): string[][] {
  return searchableAttributes.map((entry) => entry.split(',').map((one) => bareName(one.trim())))
}

interface Indexed {
  readonly path: string
  readonly rank: number
  readonly words: readonly Word[]
}

function matchesOf(record: AlgoliaRecord, query: ParsedQuery, options: Settings & SearchParams): Match[] | undefined {
  const texts = attributeGroups(options).flatMap((paths, rank) =>
    paths.flatMap((path) =>
      valuesAt(record, path).map((value): Indexed => {
        return { path, rank, words: wordsIn(String(value)) }
      }),
    ),
  )
  const holds = (phrase: readonly string[]) => texts.some(({ words }) => holdsPhrase(words, phrase))
  if (!query.phrases.every(holds)) return undefined
  if (query.excluded.some((word) => holds([word]))) return undefined
  const matches = query.words.map((word) => bestMatch(word, texts, options))
  const missing = query.words.some(({ optional }, at) => !optional && matches[at] === undefined)
  const found = matches.filter((match) => match !== undefined)
  return missing || (query.words.length > 0 && found.length === 0) ? undefined : found
}

function bestMatch(asked: QueryWord, texts: readonly Indexed[], options: Settings & SearchParams): Match | undefined {
  const exactOnly = new Set(options.disableTypoToleranceOnAttributes)
  let best: Match | undefined
  for (const { path, rank, words } of texts) {
    const within = exactOnly.has(path) ? { ...options, typoTolerance: false } : options
    words.forEach(({ text }, at) => {
      const typos = typosBetween(asked, text, within)
      if (typos === undefined) return
      const match = { typos, attribute: rank, place: rank * 1_000 + at, exact: text === asked.text }
      if (best === undefined || compareMatches(match, best) < 0) best = match
    })
  }
  return best
}

const compareMatches = (a: Match, b: Match) =>
  a.typos - b.typos || a.attribute - b.attribute || Number(b.exact) - Number(a.exact)

function fewestTypos(found: readonly Found[]): Found[] {
  const typos = ({ matches }: Found) => matches.reduce((sum, one) => sum + one.typos, 0)
  const fewest = Math.min(...found.map(typos))
  return found.filter((one) => typos(one) === fewest)
}

const proximity = (matches: readonly Match[]) =>
  matches.slice(1).reduce((sum, { place }, at) => {
    return sum + Math.min(8, Math.abs(place - (matches[at]?.place ?? 0)))
  }, 0)

type Order = (a: Found, b: Found) => number

/** One criterion after the other, as documented. */
function orderOf({ ranking = RANKING, customRanking = [] }: Settings): Order {
  const least =
    (of: (found: Found) => number): Order =>
    (a, b) =>
      of(a) - of(b)
  const orders = ranking.flatMap((criterion): Order[] => {
    switch (criterion) {
      case 'typo':
        return [least(({ matches }) => matches.reduce((sum, { typos }) => sum + typos, 0))]
      case 'words':
        return [least(({ matches }) => -matches.length)]
      case 'proximity':
        return [least(({ matches }) => proximity(matches))]
      case 'attribute':
        return [least(({ matches }) => Math.min(...matches.map(({ attribute }) => attribute)))]
      case 'exact':
        return [least(({ matches }) => -matches.filter(({ exact }) => exact).length)]
      case 'custom':
        return customRanking.map(byAttribute)
    }
    return criterion === 'geo' || criterion === 'filters' ? [] : [byAttribute(criterion)]
  })
  return (a, b) => {
    for (const order of orders) {
      const way = order(a, b)
      if (way !== 0 && !Number.isNaN(way)) return way
    }
    return 0
  }
}

/** `asc(price)`, `desc(price)`; records without the attribute come last. */
function byAttribute(criterion: string): Order {
  const sign = criterion.startsWith('desc(') ? -1 : 1
  const value = ({ record }: Found) => Number(valuesAt(record, bareName(criterion))[0] ?? Number.NaN)
  return (a, b) => {
    const [one, other] = [value(a), value(b)]
    if (Number.isNaN(one) || Number.isNaN(other)) return Number(Number.isNaN(one)) - Number(Number.isNaN(other))
    return sign * (one - other)
  }
}

function facetsOf(
  found: readonly Found[],
  asked: readonly string[],
  { attributesForFaceting = [], maxValuesPerFacet = 100 }: Settings,
): Record<string, Record<string, number>> {
  const countable = attributesForFaceting.filter((one) => !one.startsWith('filterOnly(')).map(bareName)
  const wanted = countable.filter((name) => asked.includes('*') || asked.includes(name))
  const facets: Record<string, Record<string, number>> = {}
  for (const name of wanted) {
    const counts = new Map<string, number>()
    for (const { record } of found) {
      for (const value of new Set(valuesAt(record, name).map(String))) {
        counts.set(value, (counts.get(value) ?? 0) + 1)
      }
    }
    const largest = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    if (largest.length > 0) facets[name] = Object.fromEntries(largest.slice(0, maxValuesPerFacet))
  }
  return facets
}
