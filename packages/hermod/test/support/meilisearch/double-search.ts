/**
 * Searching in the double of Meilisearch: matching, ranking rules in the order of the settings,
 * facets, sorting, marks. Everything is looked at one document after the other.
 */
import { type Condition, type Document, filterValue, numbersIn } from './double-filter.ts'
import {
  normalised,
  type QueryTerm,
  queryTerms,
  type Token,
  type TypoSettings,
  tokensOf,
  typosAllowed,
  typosBetween,
} from './double-words.ts'

export interface SearchSettings {
  readonly searchableAttributes: readonly string[]
  readonly displayedAttributes: readonly string[]
  readonly rankingRules: readonly string[]
  readonly stopWords: readonly string[]
  /** What a word is, by the separators of the settings. */
  readonly word: RegExp
  readonly typo: TypoSettings & {
    readonly disableOnAttributes: readonly string[]
    readonly disableOnWords: readonly string[]
  }
  readonly maxValuesPerFacet: number
  readonly sortFacetValuesBy: Readonly<Record<string, 'alpha' | 'count'>>
}

export interface Asked {
  readonly q: string
  readonly holds: Condition
  readonly sort: readonly string[]
  readonly matchingStrategy: 'all' | 'last' | 'frequency'
}

interface Match {
  readonly typos: number
  readonly attribute: number
  readonly position: number
  readonly exact: boolean
}

export interface Found {
  readonly document: Document
  readonly words: number
  readonly typos: number
  readonly proximity: number
  readonly attribute: number
  readonly exactness: number
  readonly order: number
}

interface Text {
  readonly attribute: string
  readonly rank: number
  readonly tokens: readonly Token[]
}

const texts = new WeakMap<Document, Map<string, Text[]>>()
const indexedWordsMax = 65_535

/** The searchable texts of a document; each element of a list is far from the one before. */
function textsIn(document: Document, attributes: readonly string[], word: RegExp): Text[] {
  const key = attributes.join() + word.source
  const known = texts.get(document) ?? new Map<string, Text[]>()
  texts.set(document, known)
  const found = known.get(key)
  if (found !== undefined) return found
  const names = attributes.includes('*') ? Object.keys(document) : attributes
  const made = names.map((attribute, rank) => {
    let shift = 0
    const tokens = leaves(document[attribute]).flatMap((text) => {
      const some = tokensOf(text, word).map((token) => ({ ...token, position: token.position + shift }))
      shift = (some.at(-1)?.position ?? shift) + 8
      return some
    })
    return { attribute, rank, tokens: tokens.slice(0, indexedWordsMax) }
  })
  known.set(key, made)
  return made
}

function leaves(value: unknown): string[] {
  if (value === null || value === undefined || typeof value === 'boolean') return []
  if (Array.isArray(value)) return value.flatMap(leaves)
  if (typeof value === 'object') return Object.values(value).flatMap(leaves)
  return [String(value)]
}

export function find(
  documents: Iterable<Document>,
  settings: SearchSettings,
  { q, holds, sort, matchingStrategy }: Asked,
): Found[] {
  const terms = queryTerms(q, new Set(settings.stopWords.map(normalised)), settings.word)
  const wanted = terms.filter(({ negative }) => !negative)
  const unwanted = terms.filter(({ negative }) => negative)
  const found: Found[] = []
  let order = 0
  for (const document of documents) {
    order++
    if (!holds(document)) continue
    const inside = textsIn(document, settings.searchableAttributes, settings.word)
    if (unwanted.some((term) => matchesOf(term, inside, settings, 0).length > 0)) continue
    const matches = wanted.map((term) => matchesOf(term, inside, settings))
    const words = matched(matches, matchingStrategy)
    if (words === undefined) continue
    found.push(judged(document, matches.slice(0, Math.max(words, 1)), words, order))
  }
  return ranked(found, settings, sort, wanted.length)
}

/** How many of the words count; undefined: the document is not found. */
function matched(matches: readonly Match[][], strategy: string): number | undefined {
  const first = matches.findIndex((some) => some.length === 0)
  if (first === -1) return matches.length
  if (strategy === 'all' || first === 0) return undefined
  return first
}

function matchesOf(term: QueryTerm, inside: readonly Text[], { typo }: SearchSettings, typosMax = 2): Match[] {
  return inside.flatMap(({ attribute, rank, tokens }) => {
    if (term.phrase) return phraseIn(term, tokens, rank)
    const [typed] = term.words as [string]
    const exactOnly = typo.disableOnAttributes.includes(attribute) || typo.disableOnWords.includes(typed)
    const max = exactOnly ? 0 : Math.min(typosMax, typosAllowed(typed, typo))
    const single = tokens.flatMap(({ word, position }) => {
      const typos = typosBetween(typed, word, { max, prefix: term.prefix })
      return typos === undefined ? [] : [{ typos, attribute: rank, position, exact: word === typed }]
    })
    return typosMax === 0 ? single : [...single, ...splitIn(typed, tokens, rank)]
  })
}

function phraseIn({ words }: QueryTerm, tokens: readonly Token[], rank: number): Match[] {
  return tokens.flatMap(({ position }, at) => {
    const holds = words.every((word, step) => {
      const token = tokens[at + step]
      if (token === undefined) return word === undefined
      return token.position === position + step && (word === undefined || token.word === word)
    })
    return holds ? [{ typos: 0, attribute: rank, position, exact: true }] : []
  })
}

/** `rfc051` finds `rfc 051`: it costs a typo. */
function splitIn(typed: string, tokens: readonly Token[], rank: number): Match[] {
  return tokens.flatMap(({ word, position }, at) => {
    const next = tokens[at + 1]
    if (next === undefined || next.position !== position + 1 || word + next.word !== typed) return []
    return [{ typos: 1, attribute: rank, position, exact: false }]
  })
}

function judged(document: Document, matches: readonly Match[][], words: number, order: number): Found {
  const least = (some: readonly Match[], by: (match: Match) => number) => Math.min(...some.map(by))
  const sum = (values: readonly number[]) => values.reduce((total, one) => total + one, 0)
  const present = matches.filter((some) => some.length > 0)
  const places = present.map((some) =>
    least(some, ({ attribute, position }) => attribute * 1e6 + Math.min(position, 1e5)),
  )
  return {
    document,
    words,
    order,
    typos: sum(present.map((some) => least(some, ({ typos }) => typos))),
    proximity: sum(present.slice(1).map((some, at) => nearest(present[at] as Match[], some))),
    attribute: sum(places),
    exactness: present.filter((some) => some.some(({ exact }) => exact)).length,
  }
}

function nearest(before: readonly Match[], after: readonly Match[]): number {
  let least = 8
  for (const one of before.slice(0, 200)) {
    for (const other of after.slice(0, 200)) {
      if (one.attribute !== other.attribute) continue
      const distance = other.position - one.position
      least = Math.min(least, distance > 0 ? distance : 1 - distance)
    }
  }
  return least
}

type Compare = (a: Found, b: Found) => number

function ranked(found: Found[], { rankingRules }: SearchSettings, sort: readonly string[], terms: number) {
  const rules: Compare[] = rankingRules.flatMap((rule): Compare[] => {
    if (rule === 'sort') return sort.map(byField)
    if (rule.includes(':')) return [byField(rule)]
    if (terms === 0) return []
    switch (rule) {
      case 'words':
        return [(a, b) => b.words - a.words]
      case 'exactness':
        return [(a, b) => b.exactness - a.exactness]
      case 'typo':
        return [(a, b) => a.typos - b.typos]
      case 'proximity':
        return [(a, b) => a.proximity - b.proximity]
      case 'attribute':
        return [(a, b) => a.attribute - b.attribute]
    }
    return []
  })
  return found.sort((a, b) => {
    for (const rule of rules) {
      const order = rule(a, b)
      if (order !== 0) return order
    }
    return a.order - b.order
  })
}

/** Numbers before texts; without a value last, whichever way. */
function byField(rule: string): Compare {
  const [name = '', direction] = rule.split(':')
  const sign = direction === 'desc' ? -1 : 1
  return (a, b) => {
    const [one, other] = [sortValue(a.document[name], sign), sortValue(b.document[name], sign)]
    if (one === undefined || other === undefined) return Number(one === undefined) - Number(other === undefined)
    if (typeof one !== typeof other) return typeof one === 'number' ? -1 : 1
    return one < other ? -sign : one > other ? sign : 0
  }
}

function sortValue(value: unknown, sign: number): number | string | undefined {
  const numbers = numbersIn(value)
  if (numbers.length > 0) return sign < 0 ? Math.max(...numbers) : Math.min(...numbers)
  return typeof value === 'string' ? filterValue(value) : undefined
}

/** Between 0 and 1, falling along the ranking rules. */
export function scoreOf({ typos, proximity, attribute, exactness, words }: Found): number {
  if (words === 0) return 1
  const parts = [1 / (1 + typos), 1 / (1 + proximity / 8), 1 / (1 + attribute / 1e6), exactness / words]
  return parts.reduce((sum, part, at) => sum + part / 10 ** at, 0) / 1.1112
}

/** Values that differ only in case are one. */
export function facetsOf(
  found: readonly Found[],
  names: readonly string[],
  { maxValuesPerFacet, sortFacetValuesBy }: SearchSettings,
): Record<string, Record<string, number>> {
  const distribution: Record<string, Record<string, number>> = {}
  for (const name of names) {
    const counts = new Map<string, { shown: string; count: number }>()
    for (const { document } of found) {
      const values = new Map(leaves(document[name]).map((text) => [filterValue(text), text]))
      for (const [key, shown] of values) {
        const known = counts.get(key) ?? { shown, count: 0 }
        counts.set(key, { ...known, count: known.count + 1 })
      }
    }
    const byCount = (sortFacetValuesBy[name] ?? sortFacetValuesBy['*']) === 'count'
    const sorted = [...counts].sort(([a, one], [b, other]) => {
      return (byCount ? other.count - one.count : 0) || (a < b ? -1 : 1)
    })
    distribution[name] = Object.fromEntries(
      sorted.slice(0, maxValuesPerFacet).map(([, { shown, count }]) => [shown, count]),
    )
  }
  return distribution
}

export interface Marks {
  readonly attributes: readonly string[]
  readonly before: string
  readonly after: string
}

/** `_formatted`: every field, numbers as texts, marks in those asked for. */
export function formatted(document: Document, q: string, settings: SearchSettings, marks: Marks): Document {
  const terms = wantedTerms(q, settings)
  const all = marks.attributes.includes('*')
  const entries = Object.entries(document).map(([name, value]) => {
    const mark = all || marks.attributes.includes(name)
    return [name, mapped(value, (text) => (mark ? marked(text, spansIn(text, terms, settings), marks) : text))]
  })
  return Object.fromEntries(entries)
}

export function matchesPosition(document: Document, q: string, settings: SearchSettings) {
  const terms = wantedTerms(q, settings)
  const entries = Object.entries(document).flatMap(([name, value]) => {
    const list = Array.isArray(value)
    const places = (list ? value : [value]).flatMap((one, at) => {
      if (typeof one !== 'string' && typeof one !== 'number') return []
      const text = String(one)
      return spansIn(text, terms, settings).map(({ from, to }) => ({
        start: Buffer.byteLength(text.slice(0, from)),
        length: Buffer.byteLength(text.slice(from, to)),
        ...(list && { indices: [at] }),
      }))
    })
    return places.length === 0 ? [] : [[name, places] as const]
  })
  return Object.fromEntries(entries)
}

function wantedTerms(q: string, { stopWords, word }: SearchSettings): QueryTerm[] {
  return queryTerms(q, new Set(stopWords.map(normalised)), word).filter(({ negative }) => !negative)
}

function mapped(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (typeof value === 'number') return change(String(value))
  if (Array.isArray(value)) return value.map((one) => mapped(one, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, mapped(one, change)]))
}

interface Span {
  readonly from: number
  readonly to: number
}

/** Of a word found by its beginning only that beginning; of phrases every word. */
function spansIn(text: string, terms: readonly QueryTerm[], { typo, word: pattern }: SearchSettings): Span[] {
  if (terms.length === 0) return []
  return tokensOf(text, pattern).flatMap(({ word, from, to }) => {
    const hits = terms.flatMap(({ words, phrase, prefix }) =>
      words.flatMap((typed) => {
        if (typed === undefined) return []
        if (word === typed) return [to]
        if (phrase) return []
        if (prefix && word.startsWith(typed)) return [from + typed.length]
        const typos = typosBetween(typed, word, { max: typosAllowed(typed, typo), prefix })
        return typos === undefined ? [] : [to]
      }),
    )
    return hits.length === 0 ? [] : [{ from, to: Math.max(...hits) }]
  })
}

function marked(text: string, spans: readonly Span[], { before, after }: Marks): string {
  let result = ''
  let at = 0
  for (const { from, to } of spans) {
    result += text.slice(at, from) + before + text.slice(from, to) + after
    at = to
  }
  return result + text.slice(at)
}
