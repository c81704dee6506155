/**
 * How texts become words inside OpenSearch: the same folding that queries go through here, written
 * down as an analyzer, so that documents are sent as they are and still meet what was typed.
 */
import { refuse } from '../../../check-options.ts'
import { fold, wordCharsMax } from '../fold.ts'
import type { Json } from './api.ts'

export const analyzers = { stem: 'hermod_stem', plain: 'hermod_plain', ids: 'hermod_ids' } as const

/** By the names that PostgreSQL has for them: the stemmer, and the list of stop words. */
const LANGUAGES: Readonly<Record<string, readonly [stemmer: string, stopWords?: string]>> = {
  arabic: ['arabic', '_arabic_'],
  armenian: ['armenian', '_armenian_'],
  basque: ['basque', '_basque_'],
  catalan: ['catalan', '_catalan_'],
  danish: ['danish', '_danish_'],
  dutch: ['dutch', '_dutch_'],
  english: ['porter2', '_english_'],
  finnish: ['finnish', '_finnish_'],
  french: ['light_french', '_french_'],
  german: ['light_german', '_german_'],
  greek: ['greek', '_greek_'],
  hindi: ['hindi', '_hindi_'],
  hungarian: ['hungarian', '_hungarian_'],
  indonesian: ['indonesian', '_indonesian_'],
  irish: ['irish', '_irish_'],
  italian: ['light_italian', '_italian_'],
  lithuanian: ['lithuanian', '_lithuanian_'],
  norwegian: ['norwegian', '_norwegian_'],
  portuguese: ['light_portuguese', '_portuguese_'],
  romanian: ['romanian', '_romanian_'],
  russian: ['russian', '_russian_'],
  spanish: ['light_spanish', '_spanish_'],
  swedish: ['swedish', '_swedish_'],
  turkish: ['turkish', '_turkish_'],
}

/** Latin, Greek, Cyrillic, their extensions, and ligatures; the server folds the rest of Latin. */
const FOLDED = [
  [0xc0, 0x24f],
  [0x370, 0x52f],
  [0x1e00, 0x1fff],
  [0xfb00, 0xfb06],
] as const
const ACCENTS = [0x300, 0x36f] as const
const UNSPACED = String.raw`\p{IsHan}\p{IsHiragana}\p{IsKatakana}`

export function analysisOf(index: string, language: string): Json {
  const known = LANGUAGES[language]
  if (known === undefined && language !== 'simple') {
    const says = `must be simple or one of ${Object.keys(LANGUAGES).join(', ')}`
    refuse(`search index ${index}`, [{ field: 'language', says }])
  }
  const folded = ['lowercase', 'asciifolding', 'hermod_length']
  const words = { type: 'custom', char_filter: ['hermod_fold'], tokenizer: 'hermod_words' }
  const reduced = known === undefined ? [] : ['hermod_stop', 'hermod_stemmer']
  return {
    char_filter: { hermod_fold: { type: 'mapping', mappings: foldMappings() } },
    tokenizer: { hermod_words: wordTokenizer },
    filter: { ...filters, ...(known && languageFilters(known)) },
    analyzer: {
      [analyzers.plain]: { ...words, filter: folded },
      [analyzers.stem]: { ...words, filter: [...folded, ...reduced] },
      [analyzers.ids]: {
        ...words,
        tokenizer: 'keyword',
        filter: ['hermod_pieces', 'flatten_graph', ...folded, 'hermod_zeros'],
      },
    },
  }
}

/** Runs of letters and digits; a character each where words are written without spaces. */
const wordTokenizer = {
  type: 'pattern',
  group: 0,
  pattern: String.raw`[${UNSPACED}]|[\p{L}\p{N}\p{M}&&[^${UNSPACED}]]++`,
}

const filters = {
  hermod_length: { type: 'length', max: wordCharsMax },
  // `RFC-051` as rfc, 051, rfc051 and 51.
  hermod_pieces: {
    type: 'word_delimiter_graph',
    catenate_all: true,
    split_on_case_change: false,
    stem_english_possessive: false,
  },
  hermod_zeros: {
    type: 'pattern_capture',
    preserve_original: true,
    patterns: ['^0+([1-9][0-9]*)$'],
  },
}

const languageFilters = ([stemmer, stopWords]: readonly [string, string?]) => ({
  hermod_stop: { type: 'stop', stopwords: stopWords },
  hermod_stemmer: { type: 'stemmer', language: stemmer },
})

let mappings: readonly string[] | undefined

/** About 1,300 rules; the server keeps them as a small automaton. */
function foldMappings(): readonly string[] {
  mappings ??= [...accents(), ...FOLDED.flatMap(([from, to]) => [...letters(from, to)])]
  return mappings
}

function* letters(from: number, to: number): Iterable<string> {
  for (let code = from; code <= to; code++) {
    const letter = String.fromCodePoint(code)
    if (!/\p{L}/u.test(letter)) continue
    const folded = fold(letter)
    if (folded !== letter && /^\p{L}+$/u.test(folded)) yield `${letter}=>${folded}`
  }
}

function accents(): string[] {
  const [from, to] = ACCENTS
  return Array.from({ length: to - from + 1 }, (_, at) => {
    return `\\u${(from + at).toString(16).padStart(4, '0')}=>`
  })
}
