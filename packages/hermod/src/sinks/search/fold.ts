/**
 * Text as it is compared: lower case, without accents, only runs of letters and digits. Documents
 * and queries go through the same function, so neither can hold an operator or a control character.
 */

/** Letters that Unicode does not take apart. */
const LETTERS: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ł: 'l',
  ħ: 'h',
  ı: 'i',
  ŋ: 'n',
}
const LETTER = new RegExp(`[${Object.keys(LETTERS).join('')}]`, 'g')
const ACCENT = /[\u0300-\u036f]/g
/** Written without spaces: every character is a word, and a query of several is a phrase. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/gu
/** Parts words. Some of them would be spelt in letters below: `Brand™` is not `brandtm`. */
const SYMBOL = /\p{S}/gu
const RUN = /[\p{L}\p{N}\p{M}]+/gu
const ASCII = /^[\x20-\x7e\s]*$/

/** PostgreSQL drops longer words with a notice, other engines refuse them. */
export const wordCharsMax = 100

export function fold(text: string): string {
  const lower = text.toLowerCase()
  if (ASCII.test(lower)) return lower
  return lower
    .replace(SYMBOL, ' ')
    .normalize('NFKD')
    .replace(ACCENT, '')
    .normalize('NFC')
    .replace(LETTER, (letter) => LETTERS[letter] as string)
    .replace(UNSPACED, ' $& ')
}

/** The words of a text, folded, in order. */
export function wordsOf(text: string): string[] {
  return (fold(text).match(RUN) ?? []).filter((word) => word.length <= wordCharsMax)
}
