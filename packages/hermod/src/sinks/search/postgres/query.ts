/**
 * A parsed query as the text of a tsquery. Every operand is a quoted run of letters and digits, so
 * whatever was typed cannot become an operator.
 */
import { finished, type Term } from '../query.ts'

/** Words searched beside the one that was typed. */
export type Alternatives = ReadonlyMap<string, readonly string[]>

const NONE: Alternatives = new Map()

/** What is searched for, as PostgreSQL understands it. */
export interface Asked {
  readonly terms: readonly Term[]
  readonly alternatives: Alternatives
  /** The text of a tsquery; undefined: no word to search for, everything is found. */
  readonly query: string | undefined
  /** The same without similar words, when there are any. */
  readonly exact: string | undefined
  /** The query is looked for in headings only; this one, without its prefix, in all of the text. */
  readonly wholeWords: string | undefined
  /** Neither phrases nor words to exclude: a heading that matches is a match. */
  readonly plain: boolean
}

export interface AskOptions {
  readonly alternatives?: Alternatives
  readonly exact?: string
  readonly wholeWords?: boolean
}

export function ask(terms: readonly Term[], options: AskOptions = {}): Asked {
  const { alternatives = NONE, exact, wholeWords = false } = options
  const query = tsquery(terms, alternatives) || undefined
  const plain = terms.every(({ words, excluded }) => words.length === 1 && !excluded)
  const whole = wholeWords ? tsquery(finished(terms)) : undefined
  return { terms, alternatives, query, exact, wholeWords: whole, plain }
}

function tsquery(terms: readonly Term[], alternatives: Alternatives = NONE): string {
  const groups: string[][] = []
  const excluded: string[] = []
  for (const term of terms) {
    const text = operand(term, alternatives)
    if (term.excluded) excluded.push(`!${text}`)
    else if (term.alternative && groups.length > 0) groups.at(-1)?.push(text)
    else groups.push([text])
  }
  return [...groups.map((group) => `(${group.join(' | ')})`), ...excluded].join(' & ')
}

/** Any word that was asked for, each on its own: what to mark in the texts found. */
export function anyWord(terms: readonly Term[], alternatives: Alternatives = NONE): string {
  const wanted = terms.filter(({ excluded }) => !excluded)
  const operands = wanted.flatMap((term) => [
    ...term.words.map((word, at) => quoted(word, term.unfinished && isLast(term.words, at))),
    ...(term.whole === undefined ? [] : [quoted(term.whole, term.unfinished)]),
    ...others(term, alternatives),
  ])
  return operands.join(' | ')
}

function operand(term: Term, alternatives: Alternatives): string {
  const { words, whole, unfinished } = term
  const phrase = words.map((word, at) => quoted(word, unfinished && isLast(words, at)))
  const either = [
    phrase.join(' <-> '),
    ...(whole === undefined ? [] : [quoted(whole, unfinished)]),
    ...others(term, alternatives),
  ]
  return `(${either.join(' | ')})`
}

function others({ words, unfinished }: Term, alternatives: Alternatives): string[] {
  if (words.length !== 1) return []
  return (alternatives.get(words[0] as string) ?? []).map((word) => quoted(word, unfinished))
}

const isLast = (words: readonly string[], at: number) => at === words.length - 1
const quoted = (word: string, prefix: boolean) => `'${word}'${prefix ? ':*' : ''}`
