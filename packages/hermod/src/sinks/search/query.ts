/**
 * What a person typed, taken apart: words that must occur, phrases, words that must not, and the
 * word still being typed. Any text is a query; nothing in it can be an error.
 */

import { wordsOf } from './fold.ts'
import { joined } from './identifiers.ts'

export interface Term {
  /** Folded; more than one is a phrase. */
  readonly words: readonly string[]
  /** `RFC-051` as one word, when it was written with separators. */
  readonly whole: string | undefined
  readonly excluded: boolean
  /** The person may still be typing this word. */
  readonly unfinished: boolean
  /** Joined to the term before by OR. */
  readonly alternative: boolean
}

export const queryCharsMax = 200
export const termsMax = 16

const SHORT = /^(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}])\p{L}){1,2}$/u
const PIECE = /(-?)"([^"]*)("|$)|(\S+)/gu

export function parseQuery(text: string): Term[] {
  const cut = text.slice(0, queryCharsMax)
  const terms: Term[] = []
  let alternative = false
  for (const match of cut.matchAll(PIECE)) {
    if (match[4] === 'OR') {
      alternative = terms.length > 0
      continue
    }
    const atEnd = (match.index ?? 0) + match[0].length === cut.length && text.length === cut.length
    const term = match[4] === undefined ? phrase(match) : word(match[4], atEnd)
    if (term.words.length === 0) continue
    terms.push({ ...term, alternative: alternative && !term.excluded })
    alternative = false
    if (terms.length === termsMax) break
  }
  return terms
}

type Parsed = Omit<Term, 'alternative'>

function phrase([, minus, inside = '']: RegExpMatchArray): Parsed {
  const words = wordsOf(inside).slice(0, termsMax)
  return { words, whole: undefined, excluded: minus === '-', unfinished: false }
}

function word(piece: string, atEnd: boolean): Parsed {
  const excluded = /^-[^-]/.test(piece)
  const words = wordsOf(piece).slice(0, termsMax)
  const whole = words.length > 1 ? joined(piece).slice(0, 100) : undefined
  return { words, whole, excluded, unfinished: atEnd && !excluded }
}

/** The word being typed has only one or two letters so far. A digit may already be a whole number. */
export function endsShort(terms: readonly Term[]): boolean {
  const { words, unfinished } = terms.at(-1) ?? { words: [], unfinished: false }
  return unfinished && words.length === 1 && SHORT.test(words[0] as string)
}

/** The same, with the last word taken as complete. */
export function finished(terms: readonly Term[]): Term[] {
  return terms.map((term) => ({ ...term, unfinished: false }))
}
