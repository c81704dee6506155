/**
 * Documents on their way to Meilisearch and back: a line of NDJSON with our fields put before the
 * JSON as it was given, ids that fit into its alphabet, values that differ when their case does.
 */
import { createHash } from 'node:crypto'
import type { ResolvedDefinition } from '../check-definition.ts'
import { idProblem, readDocument, textsIn } from '../check-document.ts'
import { isNumeric, numberOf } from '../check-request.ts'
import { documentHash } from '../document-hash.ts'
import type { Deletion, StoredDocument, Upsert } from '../engine.ts'
import { identifierWords } from '../identifiers.ts'
import { displayed as withoutHidden } from '../items.ts'
import { shownHash, without } from '../shown-hash.ts'
import type { MeilisearchDocument } from './api.ts'
import {
  exactField,
  goneAtField,
  hashField,
  isExact,
  keyField,
  numericField,
  orderField,
  placeField,
  primaryKey,
  reserved,
  versionField,
  wordsField,
} from './schema.ts'

/** Meilisearch takes 511 bytes; longer ones, and others' characters, are told by their hash. */
const PLAIN = /^[A-Za-z0-9_-]{1,200}$/
const encodedBytesMax = 350
/** No id that is taken as it is begins so. */
const ENCODED = 'hermod-'
const shownCharsMax = 100
/** Filters compare the first 468 bytes of a value. */
const valueBytesMax = 400

/** Different ids have different keys; the id itself is kept beside it. */
export function primaryKeyOf(id: string): string {
  if (PLAIN.test(id) && !id.startsWith(ENCODED)) return id
  const bytes = Buffer.from(id)
  if (bytes.length <= encodedBytesMax) return `${ENCODED}${bytes.toString('base64url')}`
  return `${ENCODED}sha-${createHash('sha256').update(bytes).digest('hex')}`
}

/** 52 bits, so that it is exact as a number. */
export function placeOf(id: string): number {
  return Number.parseInt(createHash('sha256').update(id).digest('hex').slice(0, 13), 16)
}

/**
 * A value as it is filtered and counted. Meilisearch compares without case, trims, and looks at the
 * beginning only: the hash in front tells apart what it would take for the same.
 */
export function exactValue(text: string): string {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, hashChars)
  let shown = quotable(text.slice(0, shownCharsMax)).toWellFormed()
  while (Buffer.byteLength(shown.normalize('NFKD').toLowerCase()) > valueBytesMax) {
    shown = shown.slice(0, shown.length / 2).toWellFormed()
  }
  return hash + shown
}

const hashChars = 32

/** The filter language cannot take a backslash at every place: neither it nor quotes are sent. */
const quotable = (text: string) => text.replaceAll('\\', '\ue0f0').replaceAll('"', '\ue0f1')

/** The value as a person knows it. */
export function shownValue(value: string): string {
  return value.slice(hashChars).replaceAll('\ue0f0', '\\').replaceAll('\ue0f1', '"')
}

export interface DocumentLine {
  readonly id: string
  readonly version: bigint
  readonly line: string
}

/** The line, or why there cannot be one. */
export function lineOf(definition: ResolvedDefinition, given: Upsert): DocumentLine | string {
  const { id, version, json } = given
  const document = readDocument(definition, given)
  if (typeof document === 'string') return document
  if (Object.keys(document).some((name) => name.startsWith(reserved))) {
    return `a field's name begins with ${reserved}, which is kept for Hermod`
  }
  const ours = JSON.stringify({
    ...ownFields({ id, version }),
    [orderField]: Number(version),
    [hashField]: documentHash(document),
    ...derived(definition, document),
  })
  return { id, version, line: spliced(ours, json, document) }
}

const ownFields = ({ id, version }: Deletion) => ({
  [primaryKey]: primaryKeyOf(id),
  [keyField]: id,
  [versionField]: String(version),
  [placeField]: placeOf(id),
})

/** Half a surrogate pair is JSON to us and a broken payload to the server. */
const HALF_PAIR = /\\u[dD][89a-fA-F]/

function spliced(ours: string, json: string, document: object): string {
  if (Object.keys(document).length === 0) return ours
  const text = HALF_PAIR.test(json) ? wellFormed(document) : json.replace(/[\r\n]+/g, ' ')
  return `${ours.slice(0, -1)},${text.trimStart().slice(1)}`
}

function wellFormed(document: object): string {
  return JSON.stringify(document, (_, value) => (typeof value === 'string' ? value.toWellFormed() : value))
}

function derived({ fields }: ResolvedDefinition, document: MeilisearchDocument) {
  const made: Record<string, unknown> = {}
  const words: string[] = []
  for (const field of fields) {
    const value = document[field.name]
    if (value === undefined || value === null) continue
    if (isExact(field)) made[exactField(field.name)] = textsIn(value).map(exactValue)
    if (field.kind === 'date' && isNumeric(field)) made[numericField(field)] = numberOf(field, value)
    if (field.kind === 'identifier') {
      words.push(...textsIn(value).flatMap((text) => identifierWords(text.slice(0, 200))))
    }
  }
  if (words.length > 0) made[wordsField] = words.join(' ').slice(0, 2_000)
  return made
}

/** A deletion as it is remembered, or why it cannot be. */
export function goneLine(deletion: Deletion, nowMs: number): DocumentLine | string {
  const { id, version } = deletion
  const problem = idProblem(id)
  if (problem !== undefined) return problem
  return { id, version, line: JSON.stringify({ ...ownFields(deletion), [goneAtField]: nowMs }) }
}

/** With the hash of what is there now, or with the stored one. */
export function storedOf(definition: ResolvedDefinition, found: MeilisearchDocument, fast: boolean): StoredDocument {
  const [id, version] = [idOf(found), versionOf(found)]
  const document = displayed(definition, found)
  if (fast) return { id, version, hash: String(found[hashField]), document }
  const given = givenIn(found)
  const line = lineOf(definition, { id, version, json: JSON.stringify(given) })
  const expected = typeof line === 'string' ? line : without(JSON.parse(line.line), hashField)
  return { id, version, hash: shownHash(given, without(found, hashField, ...hiddenFields), expected), document }
}

/** The server keeps vectors for itself. */
export const hiddenFields = ['_vectors']

export function versionOf(document: MeilisearchDocument): bigint {
  const text = document[versionField]
  return typeof text === 'string' && /^\d+$/.test(text) ? BigInt(text) : 0n
}

export const idOf = (document: MeilisearchDocument) => String(document[keyField])

/** Without our fields, the server's, and those that stay inside. */
export function displayed(definition: ResolvedDefinition, document: MeilisearchDocument) {
  const given = Object.entries(document).filter(([name]) => !name.startsWith(reserved) && !SERVER_FIELDS.has(name))
  return withoutHidden(definition, Object.fromEntries(given))
}

/** The document as it was given. */
function givenIn(document: MeilisearchDocument): Record<string, unknown> {
  const given = Object.entries(document).filter(([name]) => !name.startsWith(reserved))
  return without(Object.fromEntries(given), ...hiddenFields)
}

const SERVER_FIELDS = new Set(['_formatted', '_rankingScore', '_rankingScoreDetails', '_matchesPosition'])
