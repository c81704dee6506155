/**
 * Marks words in a text and shows the parts around them. Works on parts, not on markup, so that
 * nothing in a document can be mistaken for a mark.
 */
import type { HighlightPart } from './request.ts'

const UNSPACED = String.raw`[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]`
export const WORD = new RegExp(`${UNSPACED}|(?:(?!${UNSPACED})[\\p{L}\\p{N}\\p{M}])+`, 'gu')
/** Only this much of a text is searched for words to mark. */
const textCharsMax = 100_000
const wholeCharsMax = 300
const windowChars = 160
const windowsMax = 2
const spansMax = 300

interface Span {
  readonly from: number
  readonly to: number
  readonly word: string
}

/** The words of a text as they are written. */
export function spellings(text: string): Iterable<string> {
  return new Set(text.slice(0, textCharsMax).match(WORD))
}

/** Short texts whole, long ones around the words found, or their beginning. */
export function highlight(text: string, found: (spelling: string) => boolean): HighlightPart[] {
  const spans = spansOf(text.slice(0, textCharsMax), found)
  if (text.length <= wholeCharsMax) return marked(text, 0, text.length, spans)
  const parts: HighlightPart[] = []
  let end = 0
  for (const { from, to } of windowsIn(text, spans)) {
    if (from > end || (end === 0 && from > 0)) parts.push({ text: '… ', marked: false })
    parts.push(...marked(text, from, to, spans))
    if (to < text.length) parts.push({ text: ' ', marked: false })
    end = to
  }
  if (end < text.length) parts.push({ text: '…', marked: false })
  return merged(parts)
}

/** Safe in HTML: everything is escaped, then `<mark>` is put around what was found. */
export function markedHtml(parts: readonly HighlightPart[]): string {
  return parts.map(({ text, marked }) => (marked ? `<mark>${escaped(text)}</mark>` : escaped(text))).join('')
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string)
}

function spansOf(text: string, found: (spelling: string) => boolean): Span[] {
  const spans: Span[] = []
  for (const match of text.matchAll(WORD)) {
    if (!found(match[0])) continue
    spans.push({ from: match.index, to: match.index + match[0].length, word: match[0] })
  }
  return spans
}

function marked(text: string, from: number, to: number, spans: readonly Span[]): HighlightPart[] {
  const parts: HighlightPart[] = []
  let at = from
  for (const span of spans) {
    if (span.from < at || span.to > to) continue
    if (span.from > at) parts.push({ text: text.slice(at, span.from), marked: false })
    parts.push({ text: text.slice(span.from, span.to), marked: true })
    at = span.to
  }
  if (at < to) parts.push({ text: text.slice(at, to), marked: false })
  return parts
}

/** The stretches with the most different words found, in the order of the text. */
function windowsIn(text: string, spans: readonly Span[]): { from: number; to: number }[] {
  if (spans.length === 0) return [{ from: 0, to: wordEnd(text, windowChars) }]
  const looked = spans.slice(0, spansMax)
  const scored = looked.map((span) => {
    const to = span.from + windowChars
    const inside = looked.filter((other) => other.from >= span.from && other.to <= to)
    return { span, score: new Set(inside.map(({ word }) => word.toLowerCase())).size }
  })
  scored.sort((a, b) => b.score - a.score || a.span.from - b.span.from)
  const chosen: { from: number; to: number }[] = []
  for (const { span } of scored) {
    const from = wordStart(text, Math.max(0, span.from - windowChars / 4))
    const to = wordEnd(text, Math.max(span.to, from + windowChars))
    if (chosen.every((other) => to < other.from || from > other.to)) chosen.push({ from, to })
    if (chosen.length === windowsMax) break
  }
  return chosen.sort((a, b) => a.from - b.from)
}

/** Does not cut a word: moves to the next space, if one is near. */
function wordStart(text: string, at: number): number {
  if (at === 0) return 0
  const space = text.slice(at, at + 30).search(/\s/)
  return space === -1 ? whole(text, at) : at + space + 1
}

function wordEnd(text: string, at: number): number {
  if (at >= text.length) return text.length
  const space = text.slice(at, at + 30).search(/\s/)
  return space === -1 ? whole(text, at) : at + space
}

/** Never between the halves of a surrogate pair. */
function whole(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return code >= 0xdc00 && code <= 0xdfff ? at + 1 : at
}

function merged(parts: readonly HighlightPart[]): HighlightPart[] {
  const result: HighlightPart[] = []
  for (const part of parts) {
    const last = result.at(-1)
    if (last !== undefined && last.marked === part.marked) {
      result[result.length - 1] = { text: last.text + part.text, marked: part.marked }
    } else {
      result.push(part)
    }
  }
  return result
}
