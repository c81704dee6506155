/**
 * The settings of a Meilisearch index, from the one declaration. Exact values, times and the ways to
 * write an identifier lie in fields of their own, because Meilisearch compares texts without case.
 */
import type { ResolvedDefinition, ResolvedField } from '../check-definition.ts'
import { isNumeric } from '../check-request.ts'
import { stopWordsOf } from '../stop-words.ts'
import type { MeilisearchSettings } from './api.ts'

/** Begins the names of all fields that are ours. */
export const reserved = 'hermod_'
export const primaryKey = 'hermod_id'
/** The id as it was given. */
export const keyField = 'hermod_key'
export const versionField = 'hermod_version'
/** The version as a number, to sort by. */
export const orderField = 'hermod_order'
/** A number made from the id: scans page by it. */
export const placeField = 'hermod_place'
export const hashField = 'hermod_hash'
/** Identifiers in all the ways people write them. */
export const wordsField = 'hermod_words'
/** When a deletion was noted. */
export const goneAtField = 'hermod_at'

/** Exact values of a keyword or identifier. */
export const exactField = (name: string) => `hermod_is_${name}`

/** What a number or date is compared and sorted by. */
export function numericField({ name, kind }: ResolvedField): string {
  return kind === 'date' ? `hermod_ms_${name}` : name
}

/**
 * Meilisearch parts words at punctuation only. These are symbols and spaces that it would take for a part of the word
 * they touch: `x=42`, `<p>`, `10 km` with a space that does not break.
 */
const SEPARATORS = [
  ...'!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~',
  // Latin-1 and general punctuation; the two joiners (U+200C, U+200D) stand inside words.
  ...signsIn(0xa0, 0xbf),
  ...signsIn(0xd7, 0xf7),
  ...signsIn(0x2000, 0x2064).filter((sign) => sign !== '\u200c' && sign !== '\u200d'),
  // Currencies, ™ and its like, arrows, mathematics, geometric signs, check marks.
  ...signsIn(0x20a0, 0x20c0),
  ...signsIn(0x2100, 0x214f),
  ...signsIn(0x2190, 0x21ff),
  ...'−∞∑√∂∆∏∫≈≠≡≤≥●○■□▪▫▲△▼▽►◄◆◇★☆✓✔✗✘\u3000\ufeff',
]

function signsIn(from: number, to: number): string[] {
  const all = Array.from({ length: to - from + 1 }, (_, at) => String.fromCodePoint(from + at))
  return all.filter((sign) => /[^\p{L}\p{N}\p{M}\p{Cn}]/u.test(sign))
}

/** As many as anybody may ask to have counted, and one that says there are more. */
export const totalHitsMax = 1_000_001
export const facetValuesMax = 100

export function isExact({ kind }: ResolvedField): boolean {
  return kind === 'keyword' || kind === 'identifier'
}

export function settingsOf({ fields, language }: ResolvedDefinition, generation: string): MeilisearchSettings {
  const numeric = fields.filter(isNumeric).map(numericField)
  const identifiers = fields.filter(({ kind }) => kind === 'identifier').map(({ name }) => name)
  return {
    searchableAttributes: searchable(fields),
    filterableAttributes: [...fields.filter(isExact).map(({ name }) => exactField(name)), ...numeric, placeField],
    sortableAttributes: [...numeric, keyField, placeField],
    rankingRules: [...['sort', 'words', 'typo', 'proximity', 'attribute', 'exactness', `${orderField}:desc`]],
    stopWords: stopWordsOf(language),
    separatorTokens: SEPARATORS,
    typoTolerance: { disableOnAttributes: [...identifiers, wordsField] },
    pagination: { maxTotalHits: totalHitsMax },
    faceting: { maxValuesPerFacet: facetValuesMax, sortFacetValuesBy: { '*': 'count' } },
    // Settings move with the documents when indexes are swapped: this says which ones these are.
    dictionary: [markOf(generation)],
  }
}

/** The order says what counts most; Meilisearch knows no numbers for it. */
function searchable(fields: readonly ResolvedField[]): string[] {
  const named = fields.filter(({ weight }) => weight !== undefined)
  const sorted = named.toSorted((a, b) => (b.weight ?? 0) - (a.weight ?? 0))
  const heaviest = sorted.filter(({ weight }) => weight === 4).length
  const names = sorted.map(({ name }) => name)
  const identifiers = named.some(({ kind }) => kind === 'identifier') ? [wordsField] : []
  const all = names.toSpliced(heaviest, 0, ...identifiers)
  return all.length === 0 ? [wordsField] : all
}

const MARK = /^hermodgeneration(\d+)$/
const markOf = (generation: string) => `hermodgeneration${generation}`

/** Which generation's documents lie there; undefined: none of ours, or not finished. */
export function generationIn({ dictionary }: MeilisearchSettings): string | undefined {
  const words = Array.isArray(dictionary) ? dictionary : []
  return words.map((word) => MARK.exec(String(word))?.[1]).find((one) => one !== undefined)
}

/** The order of these means something. */
const ORDERED = new Set(['searchableAttributes', 'rankingRules'])

/** Sending settings that are there already would index everything again. */
export function differ(wanted: MeilisearchSettings, there: MeilisearchSettings): boolean {
  return Object.entries(wanted).some(([name, value]) => !covers(value, there[name], name))
}

/** Groups may hold more than what we set. */
function covers(wanted: unknown, there: unknown, name: string): boolean {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(there) || there.length !== wanted.length) return false
    const form = (list: readonly unknown[]) => {
      const texts = list.map((one) => JSON.stringify(one))
      return (ORDERED.has(name) ? texts : texts.sort()).join()
    }
    return form(wanted) === form(there)
  }
  if (typeof wanted !== 'object' || wanted === null) return wanted === there
  if (typeof there !== 'object' || there === null) return false
  const values = there as Record<string, unknown>
  return Object.entries(wanted).every(([key, value]) => covers(value, values[key], key))
}

/** Of the index that remembers deletions. */
export const goneSettings: MeilisearchSettings = {
  searchableAttributes: [keyField],
  filterableAttributes: [placeField, goneAtField],
}

/** Of the index that holds the declarations. */
export const homeSettings: MeilisearchSettings = {
  searchableAttributes: ['index'],
  filterableAttributes: ['index'],
}
