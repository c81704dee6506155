/**
 * Schema validation for requests. Bodies are taken as they are: a wrong type is an error, an unknown
 * field is an error, and all of them are reported at once. Parameters arrive as text and are read
 * as the types they declare.
 */
import { Ajv, type ErrorObject, type Options } from 'ajv'
import formats from 'ajv-formats'
import type { FastifySchemaCompiler } from 'fastify'
import type { FieldProblem } from './problems.ts'
import { isTime } from './times.ts'

const strictly: Options = {
  allErrors: true,
  removeAdditional: false,
  useDefaults: true,
  strict: false,
  allowUnionTypes: true,
}

const asGiven = withFormats(new Ajv({ ...strictly, coerceTypes: false }))
const fromText = withFormats(new Ajv({ ...strictly, coerceTypes: 'array' }))

function withFormats(ajv: Ajv): Ajv {
  formats.default(ajv, ['email', 'uri'])
  // Exactly what PostgreSQL reads too: no `urn:uuid:`, no year 0, no offset beyond 15 hours, no leap second.
  ajv.addFormat('uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i)
  ajv.addFormat('date-time', { type: 'string', validate: isTime })
  return ajv
}

export const validatorCompiler: FastifySchemaCompiler<object> = ({ schema, httpPart }) => {
  const check = (httpPart === 'body' ? asGiven : fromText).compile(schema)
  const checkAll = (data: unknown): boolean => {
    checkAll.errors = check(data) ? unstorable(data) : check.errors
    return checkAll.errors === null || checkAll.errors === undefined
  }
  checkAll.errors = null as ErrorObject[] | null | undefined
  return checkAll as ReturnType<FastifySchemaCompiler<object>>
}

/** Text that PostgreSQL cannot keep, or would keep as something else. */
function unstorable(data: unknown, instancePath = ''): ErrorObject[] | null {
  if (typeof data === 'string') {
    if (data.isWellFormed() && !data.includes('\0')) return null
    const message = 'must not hold NUL or half of a surrogate pair'
    return [{ instancePath, message, keyword: 'text', schemaPath: '#/text', params: {} }]
  }
  if (typeof data !== 'object' || data === null) return null
  const errors = Object.entries(data).flatMap(([key, value]) => [
    ...(unstorable(key, instancePath) ?? []),
    ...(unstorable(value, `${instancePath}/${key}`) ?? []),
  ])
  return errors.length === 0 ? null : errors
}

const places: Readonly<Record<string, string>> = {
  body: '',
  querystring: '?',
  params: ':',
  headers: 'header ',
}

/** Ajv's words, turned into a pointer and a sentence about the bound. */
export function fieldProblems(errors: readonly ErrorObject[], part: string): FieldProblem[] {
  const told = errors.filter(({ keyword }) => keyword !== 'anyOf' && keyword !== 'if')
  const unique = new Map<string, FieldProblem>()
  for (const error of told.length > 0 ? told : errors) {
    const problem = { pointer: pointerOf(error, part), detail: detailOf(error) }
    unique.set(`${problem.pointer} ${problem.detail}`, problem)
  }
  return [...unique.values()]
}

function pointerOf({ instancePath, keyword, params }: ErrorObject, part: string): string {
  const extra = keyword === 'required' ? params.missingProperty : params.additionalProperty
  const path = extra === undefined ? instancePath : `${instancePath}/${extra}`
  const prefix = places[part] ?? ''
  return prefix === '' ? path || '/' : `${prefix}${path.slice(1)}`
}

function detailOf({ keyword, params, message }: ErrorObject): string {
  if (keyword === 'required') return 'is missing'
  if (keyword === 'additionalProperties') return 'is not a known field'
  if (keyword === 'enum') return `must be one of ${params.allowedValues.join(', ')}`
  if (keyword === 'const') return `must be ${params.allowedValue}`
  return message ?? 'is not valid'
}
