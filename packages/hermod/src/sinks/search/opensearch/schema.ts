/**
 * The declaration of an index as settings and mapping. Texts are copied by weight into a few fields
 * that are searched, so that a query has few parts however many fields are declared.
 */
import type { ResolvedDefinition, ResolvedField } from '../check-definition.ts'
import { analysisOf, analyzers } from './analysis.ts'
import type { Json } from './api.ts'

/** Beside the document, added to its text and never shown: what sorting and paging need. */
export const reserved = { id: 'hermod_id', version: 'hermod_version' } as const

export const identifiersField = 'hermod_ids'
/** The words of all fields of a weight; `.plain` without stems. */
export const wordsField = (weight: number) => `hermod_w${weight}`
export const plainField = (weight: number) => `${wordsField(weight)}.plain`
/** Titles: one or two letters are looked for here only. */
export const headingWeight = 4

/** From offset 100,000 on, 1,000 documents. */
const resultWindow = 101_000

export interface IndexSettings {
  readonly shards: number
  readonly replicas: number | undefined
  readonly tombstonesMs: number
}

export function settingsOf(
  index: string,
  { language }: ResolvedDefinition,
  { shards, replicas, tombstonesMs }: IndexSettings,
): Json {
  return {
    index: {
      number_of_shards: shards,
      max_result_window: resultWindow,
      ...(replicas !== undefined && { number_of_replicas: replicas }),
      // A deletion is forgotten after this; then a late upsert would bring the document back.
      gc_deletes: `${Math.ceil(tombstonesMs / 1_000)}s`,
    },
    analysis: analysisOf(index, language),
  }
}

export function mappingOf({ fields }: ResolvedDefinition, meta: Json): Json {
  const weights = weightsOf(fields)
  const identifiers = fields.some(({ kind }) => kind === 'identifier')
  return {
    dynamic: false,
    date_detection: false,
    _meta: meta,
    properties: {
      [reserved.id]: { type: 'keyword' },
      [reserved.version]: { type: 'long' },
      ...(identifiers && { [identifiersField]: { type: 'text', analyzer: analyzers.ids } }),
      ...Object.fromEntries(weights.map((weight) => [wordsField(weight), wordsOf(weight)])),
      ...Object.fromEntries(fields.map((field) => [field.name, propertyOf(field)])),
    },
  }
}

/** Weights that words are searched with, the highest first. */
export function weightsOf(fields: readonly ResolvedField[]): number[] {
  const weights = fields.filter(({ kind }) => kind !== 'identifier').map(({ weight }) => weight)
  return [...new Set(weights)].filter((weight) => weight !== undefined).sort((a, b) => b - a)
}

function wordsOf(weight: number): Json {
  const plain = {
    type: 'text',
    analyzer: analyzers.plain,
    ...(weight === headingWeight && { index_prefixes: { min_chars: 1, max_chars: 4 } }),
  }
  return { type: 'text', analyzer: analyzers.stem, fields: { plain } }
}

function propertyOf({ kind, weight }: ResolvedField): Json {
  const copied = weight === undefined ? {} : { copy_to: [wordsField(weight)] }
  switch (kind) {
    case 'text':
      return { type: 'text', index: false, norms: false, ...copied }
    case 'identifier':
      return { type: 'keyword', copy_to: [identifiersField] }
    case 'keyword':
      return { type: 'keyword', ...copied }
    case 'number':
      return { type: 'double', coerce: false }
    case 'date':
      return { type: 'date', format: 'strict_date_optional_time||epoch_millis' }
    case 'stored':
      return { type: 'object', enabled: false }
  }
}
