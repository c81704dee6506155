/**
 * A document as a record of Algolia. The document lies in one attribute as it was written; beside it
 * is what Algolia cannot derive: exact keys (its own filters ignore case), numbers of dates, spellings
 * of identifiers. `version` is a guard: Algolia ignores an update that is not newer.
 */
import { createHash } from 'node:crypto'
import type { ResolvedDefinition } from '../check-definition.ts'
import { idProblem, readDocument, textsIn, type Values } from '../check-document.ts'
import { isNumeric, numberOf } from '../check-request.ts'
import { documentHash } from '../document-hash.ts'
import type { Deletion, StoredDocument, Upsert } from '../engine.ts'
import { identifierWords } from '../identifiers.ts'
import { displayed } from '../items.ts'
import { shownHash, without } from '../shown-hash.ts'
import type { AlgoliaRecord } from './api.ts'

/** One entry of a batch, or why there cannot be one. */
export interface Entry {
  readonly id: string
  readonly version: bigint
  /** The text of the request, when nothing is wrong. */
  readonly request: string | undefined
  readonly problem: string | undefined
}

/** On every record that is a document; a deleted one has no keys at all. */
export const liveKey = 'live'

export const keyOf = (field: string, value: string) => hex(`${field}=${value}`)
export const idKey = (id: string) => hex(`=${id}`)

const hex = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)
const identifierCharsMax = 200

export function upsertEntry(definition: ResolvedDefinition, upsert: Upsert, recordBytesMax: number): Entry {
  const values = readDocument(definition, upsert)
  if (typeof values === 'string') return bad(upsert, values)
  if (Object.hasOwn(values, '_operation')) {
    return bad(upsert, 'the field _operation is a command to Algolia: name it otherwise')
  }
  const beside = JSON.stringify({
    hash: documentHash(values),
    deletedAt: 0,
    keys: keysOf(definition, upsert.id, values),
    identifiers: identifiersOf(definition, values),
    numbers: numbersOf(definition, values),
  })
  return entry(upsert, `${beside.slice(1, -1)},"document":${upsert.json}`, recordBytesMax)
}

/** A record without anything to find, kept for a while so that a late upsert stays out. */
export function deletionEntry(deletion: Deletion, nowMs: number, recordBytesMax: number): Entry {
  const empty = `"hash":"","deletedAt":${nowMs},"keys":[],"identifiers":[],"numbers":{},"document":{}`
  return entry(deletion, empty, recordBytesMax)
}

function entry(of: Deletion, attributes: string, recordBytesMax: number): Entry {
  const problem = idProblem(of.id)
  if (problem !== undefined) return bad(of, problem)
  if (of.version < 0n || of.version >= BigInt(Number.MAX_SAFE_INTEGER)) {
    return bad(of, 'the version is not a number that Algolia can compare')
  }
  const version = `{"_operation":"IncrementSet","value":${of.version + 1n}}`
  const record = `{"objectID":${JSON.stringify(of.id)},"version":${version},${attributes}}`
  const bytes = Buffer.byteLength(record)
  if (bytes > recordBytesMax) {
    const says = `the record has ${bytes} bytes, more than the ${recordBytesMax} that recordBytesMax allows`
    return bad(of, `${says}: index less of it`)
  }
  const request = `{"action":"partialUpdateObject","body":${record}}`
  return { id: of.id, version: of.version, request, problem: undefined }
}

/** With the hash of what is there now, or with the stored one. Keys and hidden fields are never given back. */
export function storedOf(definition: ResolvedDefinition, record: AlgoliaRecord, fast: boolean): StoredDocument {
  const [id, version] = [record.objectID, versionOf(record)]
  const document = displayed(definition, (record.document ?? {}) as Values)
  if (fast) return { id, version, hash: String(record.hash), document }
  const numbers = shownNumbers(definition, document)
  const stored = {
    document,
    deletedAt: record.deletedAt,
    numbers: without((record.numbers ?? {}) as Values, ...hiddenIn(definition)),
  }
  return { id, version, hash: shownHash(document, stored, { document, deletedAt: 0, numbers }), document }
}

const hiddenIn = ({ fields }: ResolvedDefinition) => fields.filter((one) => !one.displayed).map(({ name }) => name)

function shownNumbers(definition: ResolvedDefinition, document: Values): Record<string, number> {
  return without(numbersOf(definition, document), ...hiddenIn(definition)) as Record<string, number>
}

/** The guard makes no record for 0, which is what a first load has: one is added to every version. */
export const versionOf = ({ version }: AlgoliaRecord) => BigInt(version as number) - 1n

const bad = ({ id, version }: Deletion, problem: string): Entry => {
  return { id, version, request: undefined, problem }
}

function keysOf({ fields }: ResolvedDefinition, id: string, values: Values): string[] {
  const named = fields.filter(({ kind }) => kind === 'keyword' || kind === 'identifier')
  const keys = named.flatMap(({ name }) => textsIn(values[name]).map((text) => keyOf(name, text)))
  return [...new Set([liveKey, idKey(id), ...keys])]
}

function identifiersOf({ fields }: ResolvedDefinition, values: Values): string[] {
  const named = fields.filter(({ kind }) => kind === 'identifier')
  const texts = named.flatMap(({ name }) => textsIn(values[name]))
  return texts.map((text) => identifierWords(text.slice(0, identifierCharsMax)).join(' '))
}

function numbersOf({ fields }: ResolvedDefinition, values: Values): Record<string, number> {
  const numbers = fields.filter(isNumeric).flatMap((field) => {
    const number = numberOf(field, values[field.name])
    return number === undefined ? [] : [[field.name, number]]
  })
  return Object.fromEntries(numbers)
}
