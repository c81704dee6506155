/**
 * Marks in the texts of a page what was searched for. OpenSearch gives the stems of the words there;
 * everything else happens on text in parts.
 */
import { editDistance } from '../../../nearest.ts'
import type { ResolvedField } from '../check-definition.ts'
import { textsIn } from '../check-document.ts'
import { fold } from '../fold.ts'
import { highlight, spellings } from '../highlight.ts'
import { joined } from '../identifiers.ts'
import { displayed } from '../items.ts'
import type { HighlightPart, Hit } from '../request.ts'
import { analyzers } from './analysis.ts'
import { type Asked, type Search, slipsMax } from './query.ts'

/** Below the 10,000 words that OpenSearch takes apart in one call. */
const wordsMax = 5_000

type Found = (word: string) => boolean

interface Text {
  readonly field: ResolvedField
  readonly text: string
}

export async function highlightHits(search: Search, asked: Asked, hits: readonly Hit[]): Promise<Hit[]> {
  const { fields } = search.generation.definition
  const marked = fields.filter(({ name }) => search.request.highlights.includes(name))
  const texts = hits.map(({ document }) => textsOf(marked, document))
  const found = await matching(search, asked, texts.flat())
  return hits.map((hit, at) => ({
    ...hit,
    document: displayed(search.generation.definition, hit.document),
    highlights: partsOf(texts[at] ?? [], found),
  }))
}

function textsOf(fields: readonly ResolvedField[], document: Hit['document']): Text[] {
  return fields.flatMap((field) => {
    const text = textsIn(document[field.name]).join(' · ')
    return text === '' ? [] : [{ field, text }]
  })
}

function partsOf(texts: readonly Text[], found: Found): Record<string, HighlightPart[]> {
  return Object.fromEntries(
    texts.map(({ field, text }) => {
      // `rfc051` finds RFC-051 as a whole, no word of it alone.
      const whole = field.kind === 'identifier' && found(joined(text))
      const parts = whole ? [{ text, marked: true }] : highlight(text, (spelling) => found(fold(spelling).trim()))
      return [field.name, parts]
    }),
  )
}

/** Stems keep the beginning of a word: only words that begin alike are worth asking about. */
async function matching(search: Search, asked: Asked, texts: readonly Text[]): Promise<Found> {
  const wanted = asked.terms.filter(({ excluded }) => !excluded)
  if (wanted.length === 0 || texts.length === 0) return () => false
  const typed = new Set(wanted.flatMap(({ words, whole = '' }) => [...words, whole]))
  const last = wanted.find(({ unfinished }) => unfinished)
  const begun = last === undefined ? [] : [last.words.at(-1) ?? '', last.whole ?? '']
  const stems = await stemsOf(search, [...typed, ...candidates(typed, texts)])
  const wantedStems = new Set([...typed].flatMap((word) => stems.get(word) ?? []))
  const bare = new Set([...typed].map(withoutZeros))
  return (word) => {
    if (word === '') return false
    if (typed.has(word) || bare.has(withoutZeros(word))) return true
    if (wantedStems.has(stems.get(word) ?? '')) return true
    if (begun.some((start) => start !== '' && word.startsWith(start))) return true
    return asked.similar && [...typed].some((one) => isNear(word, one))
  }
}

function candidates(typed: ReadonlySet<string>, texts: readonly Text[]): Set<string> {
  const begins = new Set([...typed].map((word) => word.slice(0, 1)))
  const words = new Set<string>()
  for (const { text } of texts) {
    for (const spelling of spellings(text)) {
      const word = fold(spelling).trim()
      if (words.size < wordsMax && begins.has(word.slice(0, 1))) words.add(word)
    }
  }
  return words
}

/** One call for all words, told apart by where they stand. */
async function stemsOf({ api, generation, call }: Search, words: readonly string[]): Promise<Map<string, string>> {
  const at = new Map<number, string>()
  let text = ''
  for (const word of new Set(words)) {
    at.set(text.length, word)
    text += `${word} `
  }
  const tokens = await api.analyze(generation.alias, analyzers.stem, text, call)
  const stems = new Map<string, string>()
  for (const { token, start_offset: start } of tokens) {
    const word = at.get(start)
    if (word !== undefined) stems.set(word, token)
  }
  return stems
}

/** As the server's own search for similar words does it. */
function isNear(word: string, typed: string): boolean {
  const slips = slipsMax(typed)
  if (slips === 0 || Math.abs(word.length - typed.length) > slips || word[0] !== typed[0]) return false
  return editDistance(word, typed) <= slips
}

const withoutZeros = (word: string) => word.replace(/^0+(?=[1-9])/, '')
