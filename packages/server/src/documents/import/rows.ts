/** Turns a line of NDJSON or a record of CSV into a new document, or says what is wrong with it. */
import { didYouMean } from 'hermod/cli'
import { type Static, Type } from 'typebox'
import { numberTooLarge, tooMuchIn } from '../../json-bounds.ts'
import { type FieldProblem, Problem } from '../../problems.ts'
import { fieldProblems, validatorCompiler } from '../../validate.ts'
import { statuses } from '../document.ts'
import { newDocumentBody, time } from '../schemas.ts'
import type { CsvRecord } from './csv.ts'
import type { TextLine } from './lines.ts'

const people = Type.Optional(
  Type.Array(Type.String({ minLength: 1, maxLength: 320 }), {
    maxItems: 100,
    uniqueItems: true,
    description: 'Verified e-mail addresses, or ids',
  }),
)

export const importRowSchema = Type.Object(
  {
    ...newDocumentBody.properties,
    owners: people,
    contributors: people,
    approvers: people,
    status: Type.Optional(Type.Enum([...statuses], { description: 'In-Review when left out' })),
    createdAt: Type.Optional({ ...time, description: 'When it began elsewhere' }),
  },
  { additionalProperties: false },
)

export type RowDocument = Static<typeof importRowSchema>

export interface ImportRow {
  /** Rows of data from 1; the header of CSV is none. */
  readonly row: number
  /** Line of the file where it begins. */
  readonly line: number
  readonly document: RowDocument
}

export interface RowError extends FieldProblem {
  readonly row: number
  readonly line: number
}

export type Checked = RowDocument | readonly FieldProblem[]

export function isRefused(checked: Checked): checked is readonly FieldProblem[] {
  return Array.isArray(checked)
}

const validate = validatorCompiler({
  schema: importRowSchema,
  method: 'POST',
  url: '/api/v2/imports',
  httpPart: 'body',
}) as { (data: unknown): boolean; errors?: never[] | null }

function check(given: unknown): Checked {
  if (!validate(given)) return fieldProblems(validate.errors ?? [], 'body')
  const document = given as RowDocument
  const { createdAt } = document
  if (createdAt !== undefined && new Date(createdAt).getTime() > Date.now() + 60_000) {
    return [{ pointer: '/createdAt', detail: 'lies in the future' }]
  }
  return document
}

const whole = (detail: string) => [{ pointer: '/', detail }]

export function ofLine({ text }: TextLine, bytesMax: number): Checked {
  if (text === undefined) return whole(`is longer than ${bytesMax} bytes`)
  const tooMuch = tooMuchIn(text)
  if (tooMuch !== undefined) return whole(tooMuch)
  try {
    const given = JSON.parse(text) as unknown
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return whole('must be a JSON object')
    const pointer = numberTooLarge(given)
    return pointer === undefined ? check(given) : [{ pointer, detail: 'is a number that is too large' }]
  } catch {
    return whole('is not valid JSON')
  }
}

const lists = new Set(['tags', 'owners', 'contributors', 'approvers'])
const fields = Object.keys(importRowSchema.properties).filter((name) => name !== 'customFields')
const bare = (name: string) => name.replace(/[\s_-]/g, '').toLowerCase()
const byBareName = new Map(fields.map((name) => [bare(name), name]))
const CUSTOM = /^customFields\.(.+)$/

/** The columns of a CSV file, by its first record: `Doc Type` and `doc_type` are docType too. */
export class CsvColumns {
  readonly #names: readonly string[]

  constructor({ fields: header }: CsvRecord) {
    this.#names = header.map((name) => (CUSTOM.test(name.trim()) ? name.trim() : (byBareName.get(bare(name)) ?? name)))
    const says = [...this.#unknown(), ...this.#twice(), ...this.#missing()]
    if (says.length > 0) throw wrongHeader(says)
  }

  /** Empty cells are left out; lists are separated by semicolons. */
  read({ fields: cells }: CsvRecord): Checked {
    if (cells.length !== this.#names.length) {
      return whole(`has ${cells.length} fields, the header has ${this.#names.length}`)
    }
    const given: Record<string, unknown> = {}
    const custom: Record<string, string> = {}
    for (const [index, name] of this.#names.entries()) {
      const cell = cells[index] ?? ''
      const [, own] = CUSTOM.exec(name) ?? []
      if (cell === '') continue
      if (own !== undefined) custom[own] = cell
      else given[name] = lists.has(name) ? listed(cell) : cell
    }
    return check(Object.keys(custom).length === 0 ? given : { ...given, customFields: custom })
  }

  #unknown(): string[] {
    return this.#names
      .filter((name) => !CUSTOM.test(name) && !fields.includes(name))
      .map((name) => `There is no column ${JSON.stringify(name)}${didYouMean(name, fields)}`)
  }

  #twice(): string[] {
    const seen = new Set<string>()
    const twice = this.#names.filter((name) => seen.size === seen.add(name).size)
    return [...new Set(twice)].map((name) => `The column ${name} is there twice.`)
  }

  #missing(): string[] {
    return ['title', 'docType', 'product']
      .filter((name) => !this.#names.includes(name))
      .map((name) => `The column ${name} is missing.`)
  }
}

function listed(cell: string): string[] {
  return cell
    .split(';')
    .map((one) => one.trim())
    .filter((one) => one !== '')
}

/** The first ones: a file with other columns has hundreds of them. */
function wrongHeader(all: readonly string[]): Problem {
  const says = all.slice(0, 20)
  if (all.length > says.length) says.push(`And ${all.length - says.length} more.`)
  const detail = `${says.join(' ')} Known columns: ${fields.join(', ')}, customFields.NAME; separated by commas.`
  return new Problem('HMD_REQUEST_INVALID', detail, {
    errors: says.map((one) => ({ pointer: 'line 1', detail: one })),
  })
}
