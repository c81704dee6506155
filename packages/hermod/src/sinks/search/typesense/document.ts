/**
 * A document as a line of an import, and back. What Typesense would hold in another form is kept
 * beside it as it was given, so that every document comes back exactly.
 */
import { createHash } from 'node:crypto'
import type { ResolvedDefinition, ResolvedField } from '../check-definition.ts'
import { readDocument, textsIn, type Values } from '../check-document.ts'
import { isNumeric, numberOf } from '../check-request.ts'
import { documentHash } from '../document-hash.ts'
import type { StoredDocument, Upsert } from '../engine.ts'
import { wordsOf } from '../fold.ts'
import { identifierWords } from '../identifiers.ts'
import { displayed } from '../items.ts'
import { shownHash, without } from '../shown-hash.ts'
import type { StoredFields } from './api.ts'
import { columnOf, hasStems, isColumn, isStemmed, numberColumn, own, ownPrefix } from './schema.ts'

const UNSAFE = /[^A-Za-z0-9_-]/gu
const identifierCharsMax = 200
const identifierWordsMax = 200
/** What lies behind is found as it is written. */
const stemmedCharsMax = 200_000
const stemmedWordsMax = 10_000
const countedBytesMax = 255
const countedCharsMax = 200

/** An id that needs no encoding in a URL or a filter: any other byte is `~` and its two digits. */
export function encodeId(id: string): string {
  return id.replace(UNSAFE, (character) => Buffer.from(character).toString('hex').replace(/../g, '~$&'))
}

export function decodeId(encoded: string): string {
  if (!encoded.includes('~')) return encoded
  const bytes = encoded.replace(/~([0-9a-f]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

/** Whole numbers in the same order as these: Typesense holds fractions in 32 bits only. */
export function orderable(value: number): bigint {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, value === 0 ? 0 : value)
  const bits = view.getBigInt64(0)
  return bits >= 0n ? bits : -(bits & 0x7fffffffffffffffn)
}

/** An exact value as letters and digits: texts are compared without case and punctuation. */
export function keyOf(field: string, value: string): string {
  const digest = createHash('sha256').update(`${field}\u001f${value}`).digest('hex')
  return digest.slice(0, 32)
}

/** Facets are counted by the first 255 bytes: a longer value is cut before, and told from others by its hash. */
function countedValue(text: string): string {
  if (Buffer.byteLength(text) <= countedBytesMax) return text
  let shown = text.slice(0, countedCharsMax).toWellFormed()
  while (Buffer.byteLength(shown) > countedCharsMax) shown = shown.slice(0, -10).toWellFormed()
  return `${shown}… ${createHash('sha256').update(text).digest('hex').slice(0, 12)}`
}

/** The line, or why there cannot be one. */
export function lineOf(definition: ResolvedDefinition, upsert: Upsert): { line: string } | string {
  const document = readDocument(definition, upsert)
  if (typeof document === 'string') return document
  const { fields } = definition
  const { columns, given } = columnsOf(fields, document)
  const id = encodeId(upsert.id)
  const head: [string, string][] = [
    ['id', JSON.stringify(id)],
    [own.version, `"${upsert.version}"`],
    [own.hash, `"${documentHash(document)}"`],
    [own.position, `${upsert.version}`],
    [own.scan, `${scanKey(id)}`],
    [own.id, `"${Buffer.from(upsert.id).toString('hex')}"`],
    [own.keys, JSON.stringify(keysOf(fields, document))],
    [own.words, JSON.stringify(identifiersOf(fields, document))],
    ...numbersOf(fields, document),
  ]
  if (hasStems(definition)) head.push([own.stems, JSON.stringify(stemsOf(fields, document))])
  if (given !== undefined) head.push([own.given, JSON.stringify(JSON.stringify(given))])
  const begin = head.map(([name, json]) => `"${name}":${json}`).join(',')
  return { line: `{${begin}${rest(given === undefined ? upsert.json : JSON.stringify(columns))}` }
}

/** What follows the first brace, on one line. */
function rest(json: string): string {
  const inside = json
    .trim()
    .slice(1)
    .trimStart()
    .replace(/[\r\n]/g, ' ')
  return inside === '}' ? inside : `,${inside}`
}

/** The fields as Typesense takes them, and as they were where that differs. */
function columnsOf(fields: readonly ResolvedField[], document: Values): { columns: Values; given: Values | undefined } {
  const columns: Record<string, unknown> = { ...document }
  const given: Record<string, unknown> = {}
  for (const name of Object.keys(document)) {
    if (name !== 'id' && !name.startsWith(ownPrefix)) continue
    given[name] = document[name]
    delete columns[name]
  }
  for (const field of fields.filter(isColumn)) {
    const value = document[field.name]
    if (value === undefined || (field.kind === 'text' && isPlain(field, value))) continue
    given[field.name] = value
    delete columns[field.name]
    const texts = textsIn(value)
    if (texts.length > 0) columns[columnOf(field)] = field.kind === 'text' ? texts.join(' · ') : texts.map(countedValue)
  }
  return { columns, given: Object.keys(given).length === 0 ? undefined : given }
}

function isPlain(field: ResolvedField, value: unknown): boolean {
  return typeof value === 'string' && columnOf(field) === field.name
}

/** `all` is in every document, so that "none of" has something to take from. */
function keysOf(fields: readonly ResolvedField[], document: Values): string[] {
  const named = fields.filter(({ kind }) => kind === 'keyword' || kind === 'identifier')
  const values = (name: string) => textsIn(document[name]).flatMap((text) => [text, countedValue(text)])
  const keys = named.flatMap(({ name }) => values(name).map((text) => keyOf(name, text)))
  return ['all', ...new Set(keys)]
}

function identifiersOf(fields: readonly ResolvedField[], document: Values): string[] {
  const named = fields.filter(({ kind }) => kind === 'identifier')
  const texts = named.flatMap(({ name }) => textsIn(document[name]))
  const words = texts.flatMap((text) => identifierWords(text.slice(0, identifierCharsMax)))
  return [...new Set(words)].slice(0, identifierWordsMax)
}

/** Each word once: the order is in the texts themselves. */
function stemsOf(fields: readonly ResolvedField[], document: Values): string {
  const texts = fields.filter(isStemmed).flatMap(({ name }) => textsIn(document[name]))
  const words = new Set(wordsOf(texts.join(' ').slice(0, stemmedCharsMax)))
  return [...words].slice(0, stemmedWordsMax).join(' ')
}

function numbersOf(fields: readonly ResolvedField[], document: Values): [string, string][] {
  return fields.filter(isNumeric).flatMap((field) => {
    const value = numberOf(field, document[field.name])
    return value === undefined ? [] : [[numberColumn(field.name), `${orderable(value)}`] as const]
  }) as [string, string][]
}

/** 63 bits: of a million ids two are the same once in ten million indexes, and a scan bears it. */
export function scanKey(encodedId: string): bigint {
  const digest = createHash('sha256').update(encodedId).digest()
  return digest.readBigUInt64BE(0) >> 1n
}

/** The document as it was given. */
export function documentOf(stored: StoredFields): Record<string, unknown> {
  const entries = Object.entries(stored).filter(([name]) => name !== 'id' && !name.startsWith(ownPrefix))
  return { ...Object.fromEntries(entries), ...givenIn(stored) }
}

/** Somebody may have spoilt the text. */
function givenIn(stored: StoredFields): Values {
  try {
    return JSON.parse(String(stored[own.given] ?? '{}'))
  } catch {
    return {}
  }
}

/** With the hash of what is there now, or with the stored one. */
export function storedDocument(definition: ResolvedDefinition, stored: StoredFields, fast: boolean): StoredDocument {
  const [id, version] = [decodeId(String(stored.id)), versionOf(stored)]
  const given = documentOf(stored)
  const hash = fast ? String(stored[own.hash] ?? '') : hashNow(definition, stored, { id, version, given })
  return { id, version, hash, document: displayed(definition, given) }
}

function hashNow(
  definition: ResolvedDefinition,
  stored: StoredFields,
  { id, version, given }: { readonly id: string; readonly version: bigint; readonly given: Values },
): string {
  const made = lineOf(definition, { id, version, json: JSON.stringify(given) })
  const expected = typeof made === 'string' ? made : comparable(JSON.parse(made.line))
  return shownHash(given, comparable(stored), expected)
}

/** What was given is kept as text, in which names may stand in another order. */
function comparable(stored: StoredFields): Values {
  return { ...without(stored, own.hash), [own.given]: givenIn(stored) }
}

export function versionOf(stored: StoredFields): bigint {
  return BigInt(String(stored[own.version] ?? 0))
}
