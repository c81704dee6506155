/**
 * Marks from Algolia as parts of plain text. The tags are random, so nothing in a document can pass
 * for one; a word of which only the beginning was typed is marked whole, as in every engine.
 */
import { randomBytes } from 'node:crypto'
import type { ResolvedField } from '../check-definition.ts'
import { textsIn } from '../check-document.ts'
import { fold } from '../fold.ts'
import { highlight, WORD } from '../highlight.ts'
import { joined } from '../identifiers.ts'
import type { Term } from '../query.ts'
import type { HighlightPart } from '../request.ts'
import type { AlgoliaHit } from './api.ts'
import { fieldPath } from './schema.ts'

export interface Tags {
  readonly highlightPreTag: string
  readonly highlightPostTag: string
}

export function randomTags(): Tags {
  const nonce = randomBytes(9).toString('hex')
  return { highlightPreTag: `<${nonce}>`, highlightPostTag: `</${nonce}>` }
}

export function highlightParams(fields: readonly ResolvedField[], tags: Tags) {
  const texts = fields.filter(({ kind }) => kind !== 'identifier')
  return { attributesToHighlight: texts.map(({ name }) => fieldPath(name)), ...tags }
}

export function highlightsOf(
  { document, _highlightResult }: AlgoliaHit,
  fields: readonly ResolvedField[],
  terms: readonly Term[],
  tags: Tags,
): Record<string, HighlightPart[]> {
  const values = (document ?? {}) as Record<string, unknown>
  const marked = (_highlightResult ?? {}) as { document?: Record<string, unknown> }
  const parts = fields.flatMap((field) => {
    const text = textsIn(values[field.name]).join(' · ')
    if (text === '') return []
    if (field.kind === 'identifier') return [[field.name, identifierParts(text, terms)]]
    const found = markedWords(marked.document?.[field.name], tags)
    return [[field.name, highlight(text, (spelling) => found.has(spelling))]]
  })
  return Object.fromEntries(parts)
}

/** The spellings in which a mark begins or goes on. */
function markedWords(result: unknown, tags: Tags): Set<string> {
  const found = new Set<string>()
  for (const one of Array.isArray(result) ? result : [result]) {
    const { value } = (one ?? {}) as { value?: unknown }
    if (typeof value === 'string') collect(value, tags, found)
  }
  return found
}

function collect(value: string, { highlightPreTag, highlightPostTag }: Tags, found: Set<string>): void {
  let text = ''
  const ranges: { from: number; to: number }[] = []
  for (const [at, piece] of value.split(highlightPreTag).entries()) {
    const [inside = '', ...rest] = at === 0 ? ['', piece] : piece.split(highlightPostTag)
    if (at > 0) ranges.push({ from: text.length, to: text.length + inside.length })
    text += inside + rest.join('')
  }
  for (const match of text.matchAll(WORD)) {
    const end = match.index + match[0].length
    if (ranges.some(({ from, to }) => from < end && to > match.index)) found.add(match[0])
  }
}

/** Found by its spellings, which are not displayed. */
function identifierParts(text: string, terms: readonly Term[]): HighlightPart[] {
  const wanted = terms.filter(({ excluded }) => !excluded)
  const fits = (typed: string, unfinished: boolean, word: string) =>
    typed === word || (unfinished && word.startsWith(typed))
  const whole = joined(text)
  const all = wanted.some(({ words, whole: written, unfinished }) => {
    return fits(written ?? (words[0] as string), unfinished, whole)
  })
  if (all) return [{ text, marked: true }]
  return highlight(text, (spelling) =>
    wanted.some(({ words, unfinished }) =>
      words.some((word, at) => fits(word, unfinished && at === words.length - 1, fold(spelling))),
    ),
  )
}
