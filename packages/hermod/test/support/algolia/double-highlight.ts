/** `_highlightResult` of the double of Algolia: a prefix is marked as far as it was typed. */
import type { AlgoliaRecord, SearchParams, Settings } from './double-search.ts'
import { attributeGroups } from './double-search.ts'
import { type ParsedQuery, type QueryWord, typosBetween, wordsIn } from './double-words.ts'

interface Highlighted {
  readonly value: string
  readonly matchLevel: 'none' | 'partial' | 'full'
  readonly matchedWords: readonly string[]
}

/** Nested as the record is. */
export function highlightsOf(
  record: AlgoliaRecord,
  query: ParsedQuery,
  options: Settings & SearchParams,
): Record<string, unknown> {
  const all = attributeGroups(options).flat()
  const wanted = options.attributesToHighlight ?? all
  const hidden = new Set(options.unretrievableAttributes)
  const result: Record<string, unknown> = {}
  for (const path of wanted.includes('*') ? all : wanted) {
    if (hidden.has(path)) continue
    const keys = path.split('.')
    const value = keys.reduce<unknown>((level, key) => {
      return (level as Record<string, unknown> | undefined | null)?.[key]
    }, record)
    if (value === undefined || value === null) continue
    put(result, keys, marked(value, query, options))
  }
  return result
}

function put(target: Record<string, unknown>, keys: readonly string[], value: unknown): void {
  const [key = '', ...rest] = keys
  if (rest.length === 0) {
    target[key] = value
    return
  }
  target[key] ??= {}
  put(target[key] as Record<string, unknown>, rest, value)
}

function marked(value: unknown, query: ParsedQuery, options: Settings & SearchParams): unknown {
  if (Array.isArray(value)) return value.map((one) => marked(one, query, options))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, marked(one, query, options)]))
  }
  return highlightText(String(value), query, options)
}

function highlightText(text: string, query: ParsedQuery, options: Settings & SearchParams): Highlighted {
  const { highlightPreTag = '<em>', highlightPostTag = '</em>' } = options
  const asked: QueryWord[] = [
    ...query.words,
    ...query.phrases.flat().map((word) => ({ text: word, prefix: false, optional: false })),
  ]
  const matchedWords = new Set<string>()
  let value = ''
  let end = 0
  for (const word of wordsIn(text)) {
    const match = asked.find((one) => typosBetween(one, word.text, options) !== undefined)
    if (match === undefined) continue
    matchedWords.add(match.text)
    const whole = !(match.prefix && word.text.startsWith(match.text))
    const to = whole ? word.to : Math.min(word.to, word.from + match.text.length)
    value += text.slice(end, word.from) + highlightPreTag + text.slice(word.from, to)
    value += highlightPostTag
    end = to
  }
  const matchLevel = matchedWords.size === 0 ? 'none' : matchedWords.size < asked.length ? 'partial' : 'full'
  return { value: value + text.slice(end), matchLevel, matchedWords: [...matchedWords] }
}
