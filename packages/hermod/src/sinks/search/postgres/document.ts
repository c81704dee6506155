/**
 * A document's JSON as the columns of a row: texts by weight, exact values, numbers. Says in a
 * sentence what is wrong with a document, without repeating what is in it.
 */
import type { ResolvedDefinition, ResolvedField } from '../check-definition.ts'
import { readDocument, textsIn } from '../check-document.ts'
import { isNumeric, numberOf } from '../check-request.ts'
import { documentHash } from '../document-hash.ts'
import type { Upsert } from '../engine.ts'
import { wordsOf } from '../fold.ts'
import { identifierWords } from '../identifiers.ts'

export interface DocumentRow {
  readonly id: string
  readonly version: bigint
  readonly json: string
  readonly hash: string
  /** Folded words of the fields of weight 4, 3, 2 and 1. */
  readonly texts: readonly [string, string, string, string]
  readonly identifiers: string
  /** `field=value`, separated by U+001F. */
  readonly keys: string
  /** By declared number and date field, in order. */
  readonly numbers: readonly (number | null)[]
}

/** A tsvector ends at 1 MB; what lies behind these is kept and displayed, but not searched. */
export const textCharsMax = 200_000
/** Used when the usual limit is still too much for a tsvector. */
export const secondCutChars = 40_000
const headingCharsMax = 10_000
export const keySeparator = '\u001f'
const keyCharsMax = 500

/** The row, or why there cannot be one. */
export function rowOf(
  definition: ResolvedDefinition,
  { id, version, json }: Upsert,
  charsMax = textCharsMax,
): DocumentRow | string {
  const document = readDocument(definition, { id, json })
  if (typeof document === 'string') return document
  const values = document
  const { fields } = definition
  return {
    id,
    version,
    json,
    hash: documentHash(document),
    texts: textsOf(fields, values, charsMax),
    identifiers: identifiersOf(fields, values),
    keys: keysOf(fields, values),
    numbers: fields.filter(isNumeric).map((field) => numberOf(field, values[field.name]) ?? null),
  }
}

type Values = Readonly<Record<string, unknown>>

/** Weight 4 first; the heading is never crowded out by the rest. */
function textsOf(fields: readonly ResolvedField[], values: Values, charsMax: number): [string, string, string, string] {
  let left = charsMax
  const take = (weight: number, max: number) => {
    const named = fields.filter((field) => field.weight === weight && field.kind !== 'identifier')
    const text = named.flatMap(({ name }) => textsIn(values[name])).join(' ')
    const cut = wordsOf(text.slice(0, max)).join(' ').slice(0, max)
    left -= cut.length
    return cut
  }
  const heading = take(4, Math.min(headingCharsMax, left))
  return [heading, take(3, left), take(2, left), take(1, left)]
}

function identifiersOf(fields: readonly ResolvedField[], values: Values): string {
  const named = fields.filter(({ kind }) => kind === 'identifier')
  const texts = named.flatMap(({ name }) => textsIn(values[name]))
  return texts
    .flatMap((text) => identifierWords(text.slice(0, 200)))
    .join(' ')
    .slice(0, 2_000)
}

function keysOf(fields: readonly ResolvedField[], values: Values): string {
  const named = fields.filter(({ kind }) => kind === 'keyword' || kind === 'identifier')
  const keys = named.flatMap(({ name }) => textsIn(values[name]).map((text) => keyOf(name, text)))
  return [...new Set(keys)].join(keySeparator)
}

/**
 * The same for documents and filters: what cannot be stored becomes U+FFFD on both sides, and what
 * is too long for an index is cut and told apart by its hash.
 */
export function keyOf(field: string, value: string): string {
  const text = value.replaceAll(keySeparator, '\ufffd').replace(/\0|\p{Surrogate}/gu, '\ufffd')
  if (text.length <= keyCharsMax) return `${field}=${text}`
  return `${field}=${text.slice(0, keyCharsMax - 100)}…${documentHash(text)}`
}
