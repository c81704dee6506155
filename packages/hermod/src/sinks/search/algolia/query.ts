/**
 * A request as the parameters of Algolia's search. Only words of letters and digits reach its query
 * language, and filters hold hashes, so nothing that was typed can be an operator or an error.
 */

import type { Comparison, Condition } from '../check-request.ts'
import type { Term } from '../query.ts'
import { idKey, keyOf, liveKey } from './document.ts'
import { facetValuesMax, fieldPath, numberPath } from './schema.ts'

export interface AskedWords {
  readonly query: string
  readonly queryType: 'prefixLast' | 'prefixNone'
  readonly optionalWords: readonly string[]
  /** Algolia excludes words only; documents with these are found first and excluded by id. */
  readonly excludedPhrases: readonly string[]
}

const isPhrase = ({ words, whole }: Term) => words.length > 1 && whole === undefined
const quoted = (words: readonly string[]) => `"${words.join(' ')}"`

/** Algolia has no OR: its optional words are that when nothing else was asked for. */
export function askedWords(terms: readonly Term[]): AskedWords {
  const wanted = terms.filter(({ excluded }) => !excluded)
  const excluded = terms.filter((term) => term.excluded)
  const plain = wanted.filter((term) => !isPhrase(term))
  const pieces = [
    ...excluded.filter(({ words }) => words.length === 1).map(({ words }) => `-${words[0]}`),
    ...wanted.filter(isPhrase).map(({ words }) => quoted(words)),
    ...plain.flatMap(({ words }) => words),
  ]
  return {
    query: pieces.join(' '),
    queryType: plain.at(-1)?.unfinished ? 'prefixLast' : 'prefixNone',
    optionalWords: alternatives(plain),
    excludedPhrases: excluded.filter(({ words }) => words.length > 1).map((one) => quoted(one.words)),
  }
}

function alternatives(terms: readonly Term[]): string[] {
  return terms.flatMap((term, at) => {
    return term.alternative || terms[at + 1]?.alternative ? term.words : []
  })
}

export interface AskedFilters {
  readonly facetFilters: readonly (readonly string[])[]
  readonly numericFilters: readonly string[]
}

const OPERATORS: Readonly<Record<Comparison, string>> = {
  from: '>=',
  to: '<=',
  above: '>',
  below: '<',
}

/** Undefined: nothing can match. */
export function askedFilters(
  conditions: readonly Condition[],
  excludedIds: readonly string[] = [],
): AskedFilters | undefined {
  const facetFilters = [[`keys:${liveKey}`], ...excludedIds.map((id) => [`keys:-${idKey(id)}`])]
  const numericFilters: string[] = []
  for (const condition of conditions) {
    const { name } = condition.field
    if ('is' in condition) {
      numericFilters.push(`${numberPath(name)}${OPERATORS[condition.is]}${condition.bound}`)
    } else if ('anyOf' in condition) {
      if (condition.anyOf.length === 0) return undefined
      facetFilters.push(condition.anyOf.map((value) => `keys:${keyOf(name, value)}`))
    } else {
      facetFilters.push(...condition.noneOf.map((value) => [`keys:-${keyOf(name, value)}`]))
    }
  }
  return { facetFilters, numericFilters }
}

/** Only these documents, in whatever order. */
export function onlyIds(ids: readonly string[]): AskedFilters {
  const keys = ids.map((id) => `keys:${idKey(id)}`)
  return { facetFilters: [[`keys:${liveKey}`], keys], numericFilters: [] }
}

/** Counting without hits. */
export function facetParams(names: readonly string[]) {
  return {
    facets: names.map(fieldPath),
    maxValuesPerFacet: facetValuesMax,
    sortFacetValuesBy: 'count',
  }
}
