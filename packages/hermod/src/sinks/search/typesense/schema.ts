/**
 * The declaration of an index as the schema of a collection. Texts and facets are fields of their own
 * names; exact values, numbers, ids and versions are in fields that begin with `hermod_`, because
 * Typesense compares texts without case and punctuation and numbers in 32 bits.
 */
import type { ResolvedDefinition, ResolvedField } from '../check-definition.ts'
import { isNumeric } from '../check-request.ts'
import type { CollectionField, NewCollection } from './api.ts'

export const own = {
  /** As text: JSON numbers end at 53 bits. */
  version: 'hermod_version',
  hash: 'hermod_hash',
  /** What was given where Typesense holds it in another form, as JSON text. */
  given: 'hermod_given',
  /** The version as a number: newest first. */
  position: 'hermod_position',
  /** A number made of the id: the order of a scan. */
  scan: 'hermod_scan',
  /** The id once more, in hexadecimal: `id` cannot be sorted by, and texts are sorted without case, `-`, `_` and `~`. */
  id: 'hermod_id',
  /** Exact values of keywords and identifiers, as hashes. */
  keys: 'hermod_keys',
  /** Identifiers in all the ways people write them. */
  words: 'hermod_words',
  /** The different words of the texts, reduced to stems: phrases are not found in a stemmed field. */
  stems: 'hermod_stems',
} as const

export const ownPrefix = 'hermod_'
export const numberColumn = (name: string) => `hermod_n_${name}`

/** Nobody reads these. */
export function unreadColumns(definition: ResolvedDefinition): string[] {
  const numbers = definition.fields.filter(isNumeric).map(({ name }) => numberColumn(name))
  const stems = hasStems(definition) ? [own.stems] : []
  return [own.position, own.scan, own.id, own.keys, own.words, ...stems, ...numbers]
}

/** Every character that is no letter or digit parts words, as everywhere in Hermod. */
const SEPARATORS = [...'!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~']

/** Scripts that Typesense parts into words only when told; Latin ones need it for nothing. */
const SCRIPTS: Readonly<Record<string, string>> = {
  japanese: 'ja',
  chinese: 'zh',
  korean: 'ko',
  thai: 'th',
  greek: 'el',
  russian: 'ru',
  bulgarian: 'bg',
  serbian: 'sr',
  ukrainian: 'uk',
}

/** Languages whose endings Typesense knows. */
const STEMMED: Readonly<Record<string, string>> = {
  english: 'en',
  german: 'de',
  french: 'fr',
  spanish: 'es',
  italian: 'it',
  dutch: 'nl',
  portuguese: 'pt',
  swedish: 'sv',
  norwegian: 'no',
  danish: 'da',
  finnish: 'fi',
  hungarian: 'hu',
  romanian: 'ro',
  turkish: 'tr',
}

export function hasStems({ language, fields }: ResolvedDefinition): boolean {
  return STEMMED[language] !== undefined && fields.some(isStemmed)
}

/** Its words are searched whatever their ending. */
export function isStemmed(field: ResolvedField): boolean {
  return isColumn(field) && field.weight !== undefined
}

/** Under its own name, unless Typesense or the engine has a use for that name. */
export function columnOf({ name }: ResolvedField): string {
  return name === 'id' || name.startsWith(ownPrefix) ? `hermod_f_${name}` : name
}

/** Searched or counted by Typesense under a field of its own. */
export function isColumn({ kind, facet, weight }: ResolvedField): boolean {
  return kind === 'text' || (kind === 'keyword' && (facet || weight !== undefined))
}

export function collectionOf(
  name: string,
  definition: ResolvedDefinition,
  metadata: Readonly<Record<string, unknown>>,
): NewCollection {
  const { fields, language } = definition
  return {
    name,
    fields: [
      { name: own.position, type: 'int64' },
      { name: own.scan, type: 'int64' },
      { name: own.id, type: 'string', sort: true },
      { name: own.keys, type: 'string[]' },
      { name: own.words, type: 'string[]', optional: true },
      ...(hasStems(definition) ? [stemsField(language)] : []),
      ...fields.filter(isColumn).map((field) => columnField(field, language)),
      ...fields.filter(isNumeric).map((field) => numberField(field)),
    ],
    token_separators: SEPARATORS,
    metadata,
  }
}

function columnField(field: ResolvedField, language: string): CollectionField {
  const locale = SCRIPTS[language]
  const common = { name: columnOf(field), optional: true, ...(locale !== undefined && { locale }) }
  if (field.kind !== 'text') return { ...common, type: 'string[]', facet: field.facet }
  return { ...common, type: 'string' }
}

function stemsField(language: string): CollectionField {
  const locale = STEMMED[language] as string
  return { name: own.stems, type: 'string', optional: true, stem: true, locale }
}

function numberField({ name }: ResolvedField): CollectionField {
  return { name: numberColumn(name), type: 'int64', optional: true, sort: true }
}

/** Deletions are remembered here, so that a late upsert stays out. */
export function tombstonesOf(name: string): NewCollection {
  return {
    name,
    token_separators: [],
    metadata: { hermod: 'deletions' },
    fields: [
      { name: own.position, type: 'int64' },
      { name: 'hermod_at', type: 'int64' },
    ],
  }
}
