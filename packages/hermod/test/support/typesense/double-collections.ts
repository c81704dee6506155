// Collections, aliases and documents of the double of Typesense: schemas are checked, documents are
// refused by the sentences of the real server, and `null` in an optional field is left out.

import { type FieldSchema, parseFilter, Refused } from './double-filters.ts'
import type { IndexedRow } from './double-search.ts'
import { tokenize } from './double-words.ts'

const TYPES = ['string', 'string[]', 'int32', 'int64', 'float', 'bool', 'auto']

export interface ImportOptions {
  readonly action: string
  readonly dirtyValues: string
  readonly returnId: boolean
}

export class DoubleCollection {
  readonly name: string
  readonly fields: readonly FieldSchema[]
  readonly separators: readonly string[]
  readonly rows = new Map<string, IndexedRow>()
  readonly createdAt = Math.floor(Date.now() / 1_000)
  metadata: unknown
  #sequence = 0

  constructor(schema: Record<string, unknown>) {
    const { name, fields, token_separators: separators = [], metadata } = schema
    if (typeof name !== 'string' || name === '') throw new Refused(400, 'Parameter `name` is required.')
    if (!Array.isArray(fields) || fields.length === 0) {
      throw new Refused(400, 'The `fields` value should be an array of objects.')
    }
    for (const field of fields) {
      if (!TYPES.includes(field?.type)) {
        throw new Refused(400, `Field \`${field?.name}\` has an invalid data type.`)
      }
    }
    this.name = name
    this.fields = fields
    this.separators = separators as string[]
    this.setMetadata(metadata)
  }

  setMetadata(metadata: unknown): void {
    const fits = metadata === undefined || (typeof metadata === 'object' && metadata !== null)
    if (!fits) throw new Refused(400, 'The `metadata` value should be an object.')
    this.metadata = metadata
  }

  summary(withFields: boolean): object {
    return {
      name: this.name,
      num_documents: this.rows.size,
      created_at: this.createdAt,
      default_sorting_field: '',
      enable_nested_fields: false,
      symbols_to_index: [],
      token_separators: this.separators,
      ...(withFields && { fields: this.fields }),
      ...(this.metadata !== undefined && { metadata: this.metadata }),
    }
  }

  /** One answer for one line. */
  import(line: string, { action, dirtyValues, returnId }: ImportOptions): object {
    let id: unknown
    try {
      const given = parseLine(line)
      id = given.id
      const stored = this.#store(given, line, action, dirtyValues)
      return { ...(returnId && { id: stored }), success: true }
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      const named = returnId && typeof id === 'string' ? { id } : {}
      return { code: error.status, document: line, error: error.message, ...named, success: false }
    }
  }

  #store(given: Record<string, unknown>, line: string, action: string, dirtyValues: string): string {
    const id = given.id ?? String(this.#sequence)
    if (typeof id !== 'string') throw new Refused(400, "Document's `id` field should be a string.")
    const there = this.rows.get(id)
    if (action === 'create' && there !== undefined) {
      throw new Refused(409, `A document with id ${id} already exists.`)
    }
    if (action === 'update' && there === undefined) {
      throw new Refused(404, `Could not find a document with id: ${id}`)
    }
    const merged = action === 'update' || action === 'emplace' ? there?.document : undefined
    const document: Record<string, unknown> = { ...merged, ...given, id }
    for (const field of this.fields) check(field, document, dirtyValues)
    const sequence = there?.sequence ?? this.#sequence++
    const { tokens, integers } = this.#index(document, line)
    this.rows.set(id, { id, document, sequence, tokens, integers })
    return id
  }

  #index(document: Readonly<Record<string, unknown>>, line: string) {
    const tokens: Record<string, ReturnType<typeof tokenize>> = {}
    const integers: Record<string, bigint> = {}
    for (const { name, type, stem = false } of this.fields) {
      const value = document[name]
      if (value === undefined) continue
      if (type.startsWith('int')) integers[name] = integerIn(line, name, value)
      if (!type.startsWith('string')) continue
      const texts = Array.isArray(value) ? value : [value]
      tokens[name] = texts.flatMap((text) => tokenize(String(text), this.separators, stem))
    }
    return { tokens, integers }
  }

  deleteBy(filter: string): string[] {
    const holds = parseFilter(filter, this.fields, this.separators)
    const gone = [...this.rows.values()].filter(holds).map(({ id }) => id)
    for (const id of gone) this.rows.delete(id)
    return gone
  }

  export(filter: string): string {
    const holds = parseFilter(filter, this.fields, this.separators)
    const rows = [...this.rows.values()].filter(holds)
    return rows.map(({ document }) => JSON.stringify(document)).join('\n')
  }
}

function parseLine(line: string): Record<string, unknown> {
  let given: unknown
  try {
    given = JSON.parse(line)
  } catch {
    throw new Refused(400, 'Bad JSON: [json.exception.parse_error.101] parse error')
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new Refused(400, 'Bad JSON: not a proper document.')
  }
  if (/\\u[dD][89abAB]/.test(line) && hasLoneSurrogate(JSON.stringify(given))) {
    throw new Refused(400, 'Bad JSON: surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF')
  }
  return given as Record<string, unknown>
}

/** JSON.stringify writes a pair as one character, and a half as an escape. */
const hasLoneSurrogate = (json: string) => /(?<!\\)(?:\\\\)*\\ud[89a-f]/i.test(json)

/** All 64 bits, from the text as it came. */
function integerIn(line: string, name: string, value: unknown): bigint {
  const [, digits] = new RegExp(`(?<!\\\\)"${name}"\\s*:\\s*(-?\\d+)`).exec(line) ?? []
  return BigInt(digits ?? Math.trunc(Number(value)))
}

const SAYS: Readonly<Record<string, string>> = {
  string: 'a string',
  'string[]': 'an array of string',
  int32: 'an int32',
  int64: 'an int64',
  float: 'a float',
  bool: 'a bool',
}

function check(field: FieldSchema, document: Record<string, unknown>, dirtyValues: string): void {
  const { name, type, optional = false } = field
  if (document[name] === undefined) {
    if (optional) return
    const says = `Field \`${name}\` has been declared in the schema, but is not found in the document.`
    throw new Refused(400, says)
  }
  if (optional && document[name] === null) {
    delete document[name]
    return
  }
  if (fits(type, document[name])) return
  if (/drop/.test(dirtyValues) && optional) {
    delete document[name]
    return
  }
  if (/coerce/.test(dirtyValues) && type === 'string') {
    document[name] = String(document[name])
    return
  }
  throw new Refused(400, `Field \`${name}\` must be ${SAYS[type] ?? type}.`)
}

function fits(type: string, value: unknown): boolean {
  if (type === 'string') return typeof value === 'string'
  if (type === 'string[]') {
    return Array.isArray(value) && value.every((one) => typeof one === 'string')
  }
  if (type.startsWith('int')) return Number.isInteger(value)
  if (type === 'float') return typeof value === 'number'
  return type === 'bool' ? typeof value === 'boolean' : true
}
