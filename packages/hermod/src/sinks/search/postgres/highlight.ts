/**
 * Marks in the texts of a page what was searched for. PostgreSQL says which of the words there match
 * (it knows the stems), everything else happens on text in parts.
 */
import type { ResolvedField } from '../check-definition.ts'
import { textsIn } from '../check-document.ts'
import type { ResolvedRequest } from '../check-request.ts'
import { fold } from '../fold.ts'
import { highlight, spellings } from '../highlight.ts'
import { joined } from '../identifiers.ts'
import { displayed } from '../items.ts'
import type { HighlightPart, Hit } from '../request.ts'
import type { Session } from './api.ts'
import type { PostgresGeneration } from './generations.ts'
import { type Asked, anyWord } from './query.ts'

const wordsMax = 5_000

interface Text {
  readonly field: ResolvedField
  readonly text: string
}

export async function highlightHits(
  session: Session,
  generation: PostgresGeneration,
  { highlights }: ResolvedRequest,
  { asked, hits }: { asked: Asked; hits: readonly Hit[] },
): Promise<Hit[]> {
  const fields = generation.definition.fields.filter(({ name }) => highlights.includes(name))
  const texts = hits.map(({ document }) => textsOf(fields, document))
  const found = await matching(session, generation, asked, texts.flat())
  return hits.map((hit, at) => ({
    ...hit,
    document: displayed(generation.definition, hit.document),
    highlights: partsOf(texts[at] ?? [], found),
  }))
}

function textsOf(fields: readonly ResolvedField[], document: Hit['document']): Text[] {
  return fields.flatMap((field) => {
    const text = textsIn(document[field.name]).join(' · ')
    return text === '' ? [] : [{ field, text }]
  })
}

function partsOf(texts: readonly Text[], found: (word: string) => boolean): Record<string, HighlightPart[]> {
  return Object.fromEntries(
    texts.map(({ field, text }) => {
      // `rfc051` finds RFC-051 as a whole, no word of it alone.
      const whole = field.kind === 'identifier' && found(joined(text))
      return [field.name, whole ? [{ text, marked: true }] : highlight(text, found)]
    }),
  )
}

/** Stems keep the beginning of a word: only words that begin alike are worth asking about. */
async function matching(
  session: Session,
  { definition }: PostgresGeneration,
  { terms, alternatives, query }: Asked,
  texts: readonly Text[],
): Promise<(word: string) => boolean> {
  if (query === undefined || texts.length === 0) return () => false
  const wanted = terms.filter(({ excluded }) => !excluded)
  const typed = wanted.flatMap(({ words, whole = '' }) => [...words, whole])
  const begins = new Set([...typed, ...[...alternatives.values()].flat()].map(begin))
  const words = new Set<string>()
  for (const { field, text } of texts) {
    if (field.kind === 'identifier') words.add(joined(text))
    for (const spelling of spellings(text)) {
      const word = fold(spelling).trim()
      if (words.size < wordsMax && begins.has(begin(word))) words.add(word)
    }
  }
  if (words.size === 0) return () => false
  const language = `'pg_catalog.${definition.language}'`
  const rows = await session.rows(
    `select w from unnest($1::text[]) w
      where to_tsvector(${language}, w) || to_tsvector('pg_catalog.simple', w) @@ to_tsquery(${language}, $2)`,
    [[...words], anyWord(terms, alternatives)],
  )
  const found = new Set(rows.map(({ w }) => w))
  return (spelling) => found.has(fold(spelling).trim())
}

/** One letter is enough to begin alike while only one is typed. */
const begin = (word: string) => word.slice(0, 1)
