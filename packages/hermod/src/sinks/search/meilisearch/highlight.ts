/**
 * Marks of Meilisearch as parts of text. Its tags are random for each search; a word it marked the
 * beginning of is marked as a whole, and long texts are shown around what was found.
 */
import type { ResolvedField } from '../check-definition.ts'
import { textsIn } from '../check-document.ts'
import { fold } from '../fold.ts'
import { highlight } from '../highlight.ts'
import { joined } from '../identifiers.ts'
import type { Term } from '../query.ts'
import type { HighlightPart } from '../request.ts'
import type { MeilisearchDocument } from './api.ts'

export interface Tags {
  readonly before: string
  readonly after: string
}

interface Marking {
  readonly fields: readonly ResolvedField[]
  readonly terms: readonly Term[]
  readonly tags: Tags
}

export function highlightsOf(
  document: MeilisearchDocument,
  { fields, terms, tags }: Marking,
): Record<string, HighlightPart[]> {
  const formatted = (document._formatted ?? {}) as MeilisearchDocument
  const highlights: Record<string, HighlightPart[]> = {}
  for (const { name, kind } of fields) {
    const text = textsIn(document[name]).join(' · ')
    if (text === '') continue
    const found = new Set(textsIn(formatted[name]).flatMap((one) => markedWords(one, tags)))
    // `rfc051` finds RFC-051 as a whole, no word of it alone.
    const whole = kind === 'identifier' && terms.some((term) => isWhole(term, text))
    highlights[name] = whole
      ? [{ text, marked: true }]
      : highlight(text, (spelling) => found.has(fold(spelling).trim()))
  }
  return highlights
}

function isWhole({ words, excluded, unfinished }: Term, text: string): boolean {
  const typed = words.join('')
  if (excluded || typed === '') return false
  const whole = joined(text)
  return whole === typed || (unfinished && words.length > 1 && whole.startsWith(typed))
}

const WORD_START = /[\p{L}\p{N}\p{M}]*$/u
const WORD_END = /^[\p{L}\p{N}\p{M}]*/u
const WORDS = /[\p{L}\p{N}\p{M}]+/gu

/** The words that have a mark anywhere in them. */
function markedWords(formatted: string, { before, after }: Tags): string[] {
  const pieces = formatted.split(before)
  return pieces.slice(1).flatMap((piece, at) => {
    const [inside = '', behind = ''] = piece.split(after)
    const ahead = (pieces[at] as string).split(after).at(-1) ?? ''
    const start = at === 0 || ahead !== '' ? (WORD_START.exec(ahead)?.[0] ?? '') : ''
    const word = start + inside + (WORD_END.exec(behind)?.[0] ?? '')
    return fold(word).match(WORDS) ?? []
  })
}
