// Words of the double of Typesense: tokens as its default tokenizer makes them, the first step of the
// Porter2 stemmer (the real server has all of it), and the distance it allows for typing errors.

export interface Token {
  readonly word: string
  /** As it is written. */
  readonly raw: string
}

/** Letters that cannot be taken apart are spelt in ASCII, as iconv does. */
const LETTERS: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ł: 'l',
  '™': 'tm',
}

function plain(character: string): string {
  if ((character >= 'a' && character <= 'z') || (character >= '0' && character <= '9')) {
    return character
  }
  if (character <= '\x7f') return /[A-Z]/.test(character) ? character.toLowerCase() : ''
  const lower = character.toLowerCase()
  const ascii = LETTERS[lower] ?? lower.normalize('NFD').replace(/[\u0300-\u036f]/g, '')
  return ascii
}

/** Separators and spaces part words; any other ASCII sign is left out, the rest is kept. */
export function tokenize(text: string, separators: readonly string[], stem: boolean): Token[] {
  const parting = new Set([...separators, ' ', '\t', '\n', '\r', '\v', '\f'])
  const tokens: Token[] = []
  let word = ''
  let raw = ''
  const end = () => {
    if (word !== '') tokens.push({ word: (stem ? stemmed(word) : word).slice(0, 100), raw })
    word = ''
    raw = ''
  }
  for (const character of text) {
    if (parting.has(character)) {
      end()
      continue
    }
    word += plain(character)
    raw += character
  }
  end()
  return tokens
}

const VOWEL = /[aeiouy]/

/** Plurals, -ed and -ing. */
export function stemmed(word: string): string {
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word
  let stem = word
  if (/sses$/.test(stem)) stem = stem.slice(0, -2)
  else if (/(ied|ies)$/.test(stem)) stem = stem.slice(0, stem.length > 4 ? -2 : -1)
  else if (/[^us]s$/.test(stem) && VOWEL.test(stem.slice(0, -2))) stem = stem.slice(0, -1)
  const ending = /(ingly|edly|ing|ed)$/.exec(stem)?.[0]
  if (ending !== undefined && VOWEL.test(stem.slice(0, -ending.length))) {
    stem = stem.slice(0, -ending.length)
    if (/(at|bl|iz)$/.test(stem)) stem += 'e'
    else if (/(bb|dd|ff|gg|mm|nn|pp|rr|tt)$/.test(stem)) stem = stem.slice(0, -1)
  }
  return stem.replace(/([^aeiou])y$/, '$1i').replace(/e$/, '')
}

/** Damerau–Levenshtein: neighbours that changed places are one error. */
export function distance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, at) => at)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      const above = rows[i - 1] as number[]
      let least = Math.min((above[j] as number) + 1, (row[j - 1] as number) + 1, (above[j - 1] as number) + cost)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) least = Math.min(least, (rows[i - 2]?.[j - 2] as number) + 1)
      row.push(least)
    }
    rows.push(row)
  }
  return rows[a.length]?.[b.length] as number
}

/** Errors between what was typed and a word, or the beginning of one. */
export function slips(typed: string, word: string, prefix: boolean, max: number): number {
  if (!prefix) {
    return Math.abs(typed.length - word.length) > max ? max + 1 : distance(typed, word)
  }
  let least = max + 1
  for (let length = typed.length - max; length <= typed.length + max; length++) {
    if (length < 1 || (length > word.length && length > typed.length)) continue
    least = Math.min(least, distance(typed, word.slice(0, length)))
  }
  return least
}
