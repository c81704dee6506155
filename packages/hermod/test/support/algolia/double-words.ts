/**
 * How the double of Algolia compares words: typing errors by length, prefixes, plurals, phrases and
 * excluded words. Simpler than the service: no splitting or joining of words, no synonyms, no rules.
 */
import { editDistance } from '../../../src/nearest.ts'

export interface Word {
  readonly text: string
  readonly from: number
  readonly to: number
}

export interface QueryWord {
  readonly text: string
  readonly prefix: boolean
  readonly optional: boolean
}

export interface ParsedQuery {
  readonly words: readonly QueryWord[]
  readonly phrases: readonly (readonly string[])[]
  readonly excluded: readonly string[]
}

export interface QueryOptions {
  readonly advancedSyntax?: boolean
  readonly queryType?: 'prefixLast' | 'prefixAll' | 'prefixNone'
  readonly removeStopWords?: boolean | readonly string[]
  readonly ignorePlurals?: boolean | readonly string[]
  readonly typoTolerance?: boolean | string
  readonly optionalWords?: readonly string[]
}

const RUN = /\p{Script=Han}|(?:(?!\p{Script=Han})[\p{L}\p{N}\p{M}])+/gu
const STOP = new Set('a an and are as at be by for in is it of on or the this to with'.split(' '))
const wordsMax = 10

const fold = (text: string) => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase()

export function wordsIn(text: string): Word[] {
  return Array.from(text.matchAll(RUN), (match) => {
    return { text: fold(match[0]), from: match.index, to: match.index + match[0].length }
  })
}

const texts = (text: string) => wordsIn(text).map((word) => word.text)

/** Stop words are not removed from what may go on: the last word of `prefixLast`. */
export function parseQuery(query: string, options: QueryOptions): ParsedQuery {
  const { advancedSyntax = false, queryType = 'prefixLast', optionalWords = [] } = options
  const phrases: string[][] = []
  const excluded: string[] = []
  let rest = query.slice(0, 512)
  if (advancedSyntax) {
    rest = rest.replace(/(^|\s)"([^"]*)"/g, (_, before: string, inside: string) => {
      phrases.push(texts(inside))
      return `${before} `
    })
    rest = rest.replace(/(^|\s)-(?=[\p{L}\p{N}])(\S+)/gu, (_, before: string, word: string) => {
      excluded.push(...texts(word))
      return `${before} `
    })
  }
  const found = texts(rest).slice(0, wordsMax)
  const optional = new Set(optionalWords.flatMap(texts))
  const isPrefix = (at: number) => queryType === 'prefixAll' || (queryType === 'prefixLast' && at === found.length - 1)
  const words = found
    .map((text, at) => ({ text, prefix: isPrefix(at), optional: optional.has(text) }))
    .filter(({ text, prefix }) => prefix || !options.removeStopWords || !STOP.has(text))
  return { words, phrases: phrases.filter((one) => one.length > 0), excluded }
}

/** Typing errors between what was typed and a word of a record; undefined: another word. */
export function typosBetween(asked: QueryWord, word: string, options: QueryOptions): number | undefined {
  if (word === asked.text || (asked.prefix && word.startsWith(asked.text))) return 0
  if (options.ignorePlurals && singular(word) === singular(asked.text)) return 0
  if (options.typoTolerance === false || options.typoTolerance === 'false') return undefined
  const allowed = asked.text.length >= 8 ? 2 : asked.text.length >= 4 ? 1 : 0
  if (allowed === 0) return undefined
  const typos = Math.min(...candidates(asked, word, allowed).map((one) => slips(asked.text, one)))
  return typos <= allowed ? typos : undefined
}

function candidates({ text, prefix }: QueryWord, word: string, allowed: number): string[] {
  if (Math.abs(word.length - text.length) <= allowed || !prefix) return [word]
  const lengths = Array.from({ length: 2 * allowed + 1 }, (_, at) => text.length - allowed + at)
  return lengths.map((length) => word.slice(0, length))
}

/** A wrong first letter counts twice. */
const slips = (a: string, b: string) => editDistance(a, b) + (a[0] === b[0] ? 0 : 1)

const singular = (word: string) =>
  word.length < 4 || word.endsWith('ss') ? word : word.replace(/ies$/, 'y').replace(/s$/, '')

export function holdsPhrase(words: readonly Word[], phrase: readonly string[]): boolean {
  return words.some((_, at) => phrase.every((text, step) => words[at + step]?.text === text))
}
