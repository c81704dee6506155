/** Identifiers in all the ways people write them: `RFC-051`, `rfc 051`, `rfc051`, `RFC 51`. */
import { wordsOf } from './fold.ts'

/** The pieces, the whole without separators, and numbers without leading zeros. */
export function identifierWords(text: string): string[] {
  const whole = joined(text)
  if (whole === '') return []
  const pieces = wordsOf(text).flatMap((word) => word.match(/\p{N}+|[^\p{N}]+/gu) ?? [])
  const numbers = pieces.filter((piece) => /^0+[1-9]/.test(piece))
  return [...pieces, whole, ...numbers.map((number) => number.replace(/^0+/, ''))]
}

export function joined(text: string): string {
  return wordsOf(text).join('')
}
