/**
 * Makes texts of a destination safe to store. They may be hostile: they are cut first, then cleaned, since a cut may
 * leave half of a surrogate pair. PostgreSQL can store the result, as text and as JSON.
 */

/** NUL, half of a surrogate pair, and control characters other than tab and line breaks. */
const FOUL = /(?![\t\n\r])\p{Cc}|\p{Surrogate}/gu

/** At most so many characters; a cut is marked. */
export function clip(value: unknown, charsMax: number): string {
  const text = typeof value === 'string' ? value : String(value)
  return clean(text.length > charsMax ? `${text.slice(0, charsMax - 1)}…` : text)
}

export function clean(text: string): string {
  return text.replace(FOUL, '\ufffd')
}

export function isClean(text: string): boolean {
  return clean(text) === text
}

/** JSON.stringify writes NUL and lone surrogates as escapes, in keys too; json accepts them, and fails when it is read. */
const ESCAPE = /\\(?:u(0000|d[89a-f][0-9a-f]{2})|.)/g

/** JSON that can be stored and read again. Other control characters stay: JSON escapes them. */
export function storableJson(value: unknown): string {
  const text = JSON.stringify(value)
  if (!text.includes('\\u')) return text
  return text.replace(ESCAPE, (found, foul: string | undefined) => (foul === undefined ? found : '\\ufffd'))
}
