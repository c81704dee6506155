/**
 * Words as the double of Meilisearch sees them: separators near and far, folded letters, typing
 * errors by the documented rules (one from five letters on, two from nine, the first letter counts
 * double, swapped neighbours once).
 */

export interface Token {
  readonly word: string
  /** Neighbours differ by 1; behind a hard separator (`. , ; : ! ?` and brackets) by 8. */
  readonly position: number
  /** Where it stands in the text, in UTF-16 units. */
  readonly from: number
  readonly to: number
}

/**
 * Punctuation parts words. Symbols, invisible characters and spaces other than U+0020 are part of a word, as on the
 * real server, unless `separatorTokens` names them.
 */
export function wordPattern(separators: readonly string[]): RegExp {
  const parting = [' ', '+', '`', ...separators].map((sign) => `\\u{${sign.codePointAt(0)?.toString(16)}}`).join('')
  return new RegExp(`(?:[\\p{L}\\p{N}\\p{M}]|(?![${parting}])[\\p{S}\\p{Cf}\\p{Zs}])+`, 'gu')
}

const HARD = /[.,;:!?()[\]{}…。，、；：！？\n]/u
const hardDistance = 8

export function normalised(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
}

export function tokensOf(text: string, pattern: RegExp): Token[] {
  const tokens: Token[] = []
  let position = 0
  let end = 0
  for (const match of text.matchAll(pattern)) {
    if (tokens.length > 0) position += HARD.test(text.slice(end, match.index)) ? hardDistance : 1
    end = match.index + match[0].length
    tokens.push({ word: normalised(match[0]), position, from: match.index, to: end })
  }
  return tokens
}

export interface TypoSettings {
  readonly enabled: boolean
  readonly oneTypo: number
  readonly twoTypos: number
}

export function typosAllowed(word: string, { enabled, oneTypo, twoTypos }: TypoSettings): number {
  const letters = [...word].length
  if (!enabled || letters < oneTypo) return 0
  return letters < twoTypos ? 1 : 2
}

/** How many slips lie between what was typed and a word of a document; undefined: too many. */
export function typosBetween(
  typed: string,
  word: string,
  { max, prefix }: { max: number; prefix: boolean },
): number | undefined {
  if (word === typed || (prefix && word.startsWith(typed))) return 0
  if (max === 0) return undefined
  const first = typed[0] === word[0] ? 0 : 1
  const distance = first + slips([...typed], [...word], prefix, max)
  return distance <= max ? distance : undefined
}

/** Damerau and Levenshtein; of a prefix, the nearest beginning of the word. */
function slips(a: readonly string[], b: readonly string[], prefix: boolean, max: number): number {
  if (a.length - b.length > max || (!prefix && b.length - a.length > max)) return max + 1
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, at) => at)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    const above = rows[i - 1] as number[]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      let least = Math.min((above[j] as number) + 1, (row[j - 1] as number) + 1, (above[j - 1] as number) + same)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, ((rows[i - 2] as number[])[j - 2] as number) + 1)
      }
      row.push(least)
    }
    rows.push(row)
  }
  const last = rows.at(-1) as number[]
  return prefix ? Math.min(...last) : (last.at(-1) as number)
}

/** A piece of a query: words in a row are a phrase. */
export interface QueryTerm {
  /** Undefined in a phrase: a stop word, any word will do. */
  readonly words: readonly (string | undefined)[]
  readonly phrase: boolean
  readonly prefix: boolean
  readonly negative: boolean
}

const wordsMax = 10

/** Quotes make phrases, a minus behind a space excludes, the very last word may go on. */
export function queryTerms(query: string, stopWords: ReadonlySet<string>, pattern: RegExp): QueryTerm[] {
  const terms: QueryTerm[] = []
  const pieces = new RegExp(`(^|\\s)?(-?)"([^"]*)("|$)|(^|\\s)(-)(?=[\\p{L}\\p{N}])|(${pattern.source})`, 'gu')
  let negative = false
  for (const match of query.matchAll(pieces)) {
    if (terms.length >= wordsMax) break
    const [whole, , minus, inside, , , dash, word] = match
    if (dash !== undefined) {
      negative = true
    } else if (inside !== undefined) {
      terms.push(...phrasesIn(inside, stopWords, minus === '-', pattern))
    } else if (word !== undefined) {
      const last = match.index + whole.length === query.length
      const folded = normalised(word)
      if (negative || last || !stopWords.has(folded)) {
        terms.push({ words: [folded], phrase: false, prefix: last && !negative, negative })
      }
      negative = false
    }
  }
  return terms
}

/** A hard separator ends a phrase and begins another. */
function phrasesIn(text: string, stopWords: ReadonlySet<string>, negative: boolean, pattern: RegExp): QueryTerm[] {
  return text.split(HARD).flatMap((part) => {
    const words = tokensOf(part, pattern).map(({ word }) => (stopWords.has(word) ? undefined : word))
    if (words.every((word) => word === undefined)) return []
    return [{ words, phrase: true, prefix: false, negative }]
  })
}
