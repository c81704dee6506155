/**
 * What every engine refuses in a document before anything is sent: a sentence that names the field
 * and never repeats what is in it.
 */
import type { ResolvedDefinition, ResolvedField } from './check-definition.ts'
import { isNumeric, numberOf } from './check-request.ts'
import type { Upsert } from './engine.ts'

export type Values = Readonly<Record<string, unknown>>

const idBytesMax = 512

/** The document, or why it cannot be one. */
export function readDocument(
  { fields }: ResolvedDefinition,
  { id, json }: Pick<Upsert, 'id' | 'json'>,
): Values | string {
  const problem = idProblem(id)
  if (problem !== undefined) return problem
  let document: unknown
  try {
    document = JSON.parse(json)
  } catch {
    return 'the document is not JSON'
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    return 'the document is not an object: give the event a payload, or the subscription load()'
  }
  const values = document as Values
  for (const field of fields) {
    const wrong = fieldProblem(field, values[field.name])
    if (wrong !== undefined) return `${field.name} ${wrong}`
  }
  return values
}

export function idProblem(id: string): string | undefined {
  if (typeof id !== 'string' || id === '') return 'the id is empty'
  if (Buffer.byteLength(id) > idBytesMax) return `the id has more than ${idBytesMax} bytes`
  return /[\0\p{Surrogate}]/u.test(id) ? 'the id holds a character that cannot be stored' : undefined
}

/** Absent and null are fine everywhere. */
function fieldProblem(field: ResolvedField, value: unknown): string | undefined {
  if (value === undefined || value === null || field.kind === 'stored') return undefined
  if (isNumeric(field)) {
    if (numberOf(field, value) !== undefined) return undefined
    return field.kind === 'number'
      ? 'must be a number'
      : 'must be an ISO time with its zone, or milliseconds since 1970'
  }
  const list = Array.isArray(value) ? value : [value]
  if (list.every((one) => one === null || isScalar(one))) return undefined
  return 'must be a text or a list of texts'
}

function isScalar(value: unknown): boolean {
  return ['string', 'number', 'boolean'].includes(typeof value)
}

/** The texts of a field, whatever it holds. */
export function textsIn(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value]
  return list.filter(isScalar).map(String)
}
