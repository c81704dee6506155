// Filters of the double of Typesense: conditions joined by &&, on ids, texts and whole numbers. As in
// the real server texts are compared word by word, without case and punctuation, even with `:=`.

import { tokenize } from './double-words.ts'

export interface FieldSchema {
  readonly name: string
  readonly type: string
  readonly optional?: boolean
  readonly facet?: boolean
  readonly sort?: boolean
  readonly stem?: boolean
  readonly index?: boolean
}

export interface StoredRow {
  readonly id: string
  readonly document: Readonly<Record<string, unknown>>
  /** Whole numbers of 64 bits, which JSON.parse would round. */
  readonly integers: Readonly<Record<string, bigint>>
}

export class Refused extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

export type Filter = (row: StoredRow) => boolean

const CONDITION = /^\s*([A-Za-z0-9_.]+)\s*:\s*(!=|>=|<=|=|>|<)?\s*(\[[\s\S]*\]|[\s\S]+?)\s*$/

export function parseFilter(text: string, fields: readonly FieldSchema[], separators: readonly string[]): Filter {
  if (text.trim() === '') return () => true
  const conditions = text.split(/\s*&&\s*/).map((part) => {
    const [, name = '', operator = '', value = ''] = CONDITION.exec(part) ?? []
    if (name === '') throw new Refused(400, 'Could not parse the filter query.')
    const values = /^\[/.test(value) ? value.slice(1, -1).split(',') : [value]
    return condition(name, operator, values.map(unquoted), fields, separators)
  })
  return (row) => conditions.every((holds) => holds(row))
}

const unquoted = (value: string) => value.trim().replace(/^`([\s\S]*)`$/, '$1')

function condition(
  name: string,
  operator: string,
  values: readonly string[],
  fields: readonly FieldSchema[],
  separators: readonly string[],
): Filter {
  if (name === 'id') {
    const wanted = new Set(values)
    return ({ id }) => wanted.has(id) !== (operator === '!=')
  }
  const field = fields.find((one) => one.name === name)
  if (field === undefined || field.index === false) {
    throw new Refused(404, `Could not find a filter field named \`${name}\` in the schema.`)
  }
  return field.type === 'int64' || field.type === 'int32'
    ? numeric(field, operator, values)
    : textual(field, operator, values, separators)
}

function numeric({ name }: FieldSchema, operator: string, values: readonly string[]): Filter {
  if (!values.every((value) => /^-?\d+$/.test(value))) {
    throw new Refused(400, `Error with filter field \`${name}\`: Not an int64.`)
  }
  const bounds = values.map(BigInt)
  const compare: Record<string, (value: bigint, bound: bigint) => boolean> = {
    '>': (value, bound) => value > bound,
    '>=': (value, bound) => value >= bound,
    '<': (value, bound) => value < bound,
    '<=': (value, bound) => value <= bound,
  }
  return ({ integers }) => {
    const value = integers[name]
    if (operator === '!=') return value === undefined || !bounds.includes(value)
    if (value === undefined) return false
    const holds = compare[operator] ?? ((one, bound) => one === bound)
    return bounds.some((bound) => holds(value, bound))
  }
}

function textual(
  { name, type, stem = false }: FieldSchema,
  operator: string,
  values: readonly string[],
  separators: readonly string[],
): Filter {
  const words = (text: string) => tokenize(text, separators, stem).map(({ word }) => word)
  const wanted = values.map(words)
  const whole = operator === '=' || operator === '!='
  const matches = (text: string) => {
    const given = words(text)
    return wanted.some((list) =>
      whole ? list.join(' ') === given.join(' ') : list.length > 0 && list.every((word) => given.includes(word)),
    )
  }
  return ({ document }) => {
    const value = document[name]
    const texts = type === 'string[]' ? ((value as string[] | undefined) ?? []) : [value]
    const found = texts.some((text) => typeof text === 'string' && matches(text))
    return found !== (operator === '!=')
  }
}
