/**
 * What was asked as parameters of a Typesense search. Only letters, digits, quotes around phrases and
 * the minus of our own making reach `q`; filters hold nothing but hashes and numbers.
 */
import type { ResolvedDefinition } from '../check-definition.ts'
import type { Condition, ResolvedRequest } from '../check-request.ts'
import { parseQuery, type Term } from '../query.ts'
import { withoutStopWords } from '../stop-words.ts'
import { keyOf, orderable } from './document.ts'
import { columnOf, hasStems, isStemmed, numberColumn, own } from './schema.ts'

/** The words of a query as Typesense takes them. */
export interface Asked {
  /** `*` finds everything. */
  readonly q: string
  /** The person may still be typing this word. */
  readonly unfinished: boolean
  /** Words in a fixed order are wanted, or unwanted. */
  readonly phrases: boolean
  /** Words that may be marked in a text, the one still typed last. */
  readonly words: readonly string[]
}

const UNSPACED = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]$/u

export function ask({ language }: ResolvedDefinition, query: string): Asked {
  const terms = withoutStopWords(parseQuery(query), language)
  const wanted = terms.filter(({ excluded }) => !excluded)
  const phrases = wanted.filter(isPhrase)
  const words = wanted.filter((term) => !isPhrase(term)).flatMap((term) => spaced(term.words))
  const parts = [
    ...phrases.map((term) => quoted(term)),
    ...words,
    ...terms.filter(({ excluded }) => excluded).map((term) => `-${excludedPart(term)}`),
  ]
  const last = wanted.at(-1)
  return {
    q: parts.length === 0 ? '*' : parts.join(' '),
    unfinished: words.length > 0 && (last?.unfinished ?? false),
    phrases: parts.some((part) => part.includes('"')),
    words: wanted.flatMap(({ words: own, whole }) => [...own, ...(whole ? [whole] : [])]),
  }
}

/** `RFC-051` is words, not a phrase: it may be written otherwise in the document. */
const isPhrase = ({ words, whole }: Term) => words.length > 1 && whole === undefined

const quoted = ({ words }: Term) => `"${spaced(words).join(' ')}"`

function excludedPart(term: Term): string {
  const words = spaced(term.words)
  return words.length === 1 ? (words[0] as string) : `"${words.join(' ')}"`
}

/** Typesense keeps what is written without spaces together, unless it knows the language. */
function spaced(words: readonly string[]): string[] {
  const joined: string[] = []
  words.forEach((word, at) => {
    const run = at > 0 && UNSPACED.test(word) && UNSPACED.test(words[at - 1] as string)
    if (run) joined[joined.length - 1] += word
    else joined.push(word)
  })
  return joined
}

/** All of them hold. A list without values is not for here: it finds nothing. */
export function filterOf(conditions: readonly Condition[]): string {
  return conditions.map(conditionOf).filter(Boolean).join(' && ')
}

const COMPARISONS = { from: '>=', to: '<=', above: '>', below: '<' } as const

function conditionOf(condition: Condition): string {
  const { name } = condition.field
  if ('is' in condition) {
    return `${numberColumn(name)}:${COMPARISONS[condition.is]}${orderable(condition.bound)}`
  }
  const list = (values: readonly string[]) => [...new Set(values.map((value) => keyOf(name, value)))].join(',')
  if ('anyOf' in condition) return `${own.keys}:=[${list(condition.anyOf)}]`
  return condition.noneOf.length === 0 ? '' : `${own.keys}:!=[${list(condition.noneOf)}]`
}

export function findsNothing(conditions: readonly Condition[]): boolean {
  return conditions.some((condition) => 'anyOf' in condition && condition.anyOf.length === 0)
}

/** Typesense sorts by three fields; the id parts those that are equal, where there is room. */
export const sortFieldsMax = 3

export function sortOf({ sort }: ResolvedRequest, { q }: Asked): string {
  const byField = sort.map(
    ({ field, ascending }) => `${numberColumn(field)}(missing_values: last):${ascending ? 'asc' : 'desc'}`,
  )
  const relevance = q === '*' ? `${own.position}:desc` : '_text_match:desc'
  const order = byField.length > 0 ? byField : [relevance]
  return [...order, `${own.id}:asc`].slice(0, sortFieldsMax).join(',')
}

interface Searched {
  readonly column: string
  readonly weight: number
  readonly typos: number
}

/** The heaviest first; identifiers are never corrected, and stems have no order for phrases. */
function searched(definition: ResolvedDefinition, { phrases }: Asked): Searched[] {
  const { fields } = definition
  const columns = fields
    .filter(isStemmed)
    .map((field) => ({ column: columnOf(field), weight: field.weight as number, typos: 2 }))
  const identifiers = fields.some(({ kind }) => kind === 'identifier')
  if (identifiers) columns.push({ column: own.words, weight: 4, typos: 0 })
  if (hasStems(definition) && !phrases) columns.push({ column: own.stems, weight: 0, typos: 0 })
  return columns.sort((a, b) => b.weight - a.weight)
}

/** Weights go up to 15; a title counts clearly more than a text. */
const WEIGHTS: Readonly<Record<number, number>> = { 4: 15, 3: 8, 2: 4, 1: 2, 0: 1 }
/** Words that a beginning or a misspelling may stand for. */
const candidatesMax = 100

export function wordsOf(
  definition: ResolvedDefinition,
  asked: Asked,
  { similar }: { similar: boolean },
): Record<string, string | number | boolean> {
  const { q, unfinished } = asked
  const fields = searched(definition, asked)
  if (q === '*' || fields.length === 0) return { q: '*' }
  return {
    q,
    query_by: fields.map(({ column }) => column).join(','),
    query_by_weights: fields.map(({ weight }) => WEIGHTS[weight]).join(','),
    num_typos: fields.map(({ typos }) => (similar ? typos : 0)).join(','),
    prefix: unfinished,
    drop_tokens_threshold: 0,
    typo_tokens_threshold: 1,
    max_candidates: candidatesMax,
    split_join_tokens: similar ? 'fallback' : 'off',
    enable_typos_for_numerical_tokens: false,
  }
}
