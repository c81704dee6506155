/** What a route answers with, for its schema: its own answers and the problems it can meet. */
import { type TSchema, Type } from 'typebox'
import { type ProblemCode, problemCatalogue } from '../problems.ts'

/** One error (RFC 9457), known to the document as `Problem`. */
export const problemSchema = Type.Object(
  {
    type: Type.String({ description: 'Path of the page that explains it' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'What is wrong and what to do about it' }),
    instance: Type.String(),
    code: Type.String({ pattern: '^HMD_[A-Z_]+$' }),
    requestId: Type.String(),
    errors: Type.Optional(Type.Array(Type.Object({ pointer: Type.String(), detail: Type.String() }))),
  },
  { $id: 'Problem', additionalProperties: true, description: 'Further fields are facts' },
)

/** Any route can meet these: bad input, no token, no permission, too many, long headers, a database that is away. */
const usual = [400, 401, 403, 429, 431, 500, 503] as const

type ProblemStatus = (typeof problemCatalogue)[ProblemCode][0]

/** The answers of a route, and the problems it adds to the usual ones: `answers({ 200: X }, 404)`. */
export function answers<T extends Readonly<Record<number, TSchema>>>(own: T, ...more: readonly ProblemStatus[]): T {
  // A body that may be too large may also be too slow.
  const slow = more.includes(413) ? ([408] as const) : []
  const statuses = [...new Set([...usual, ...slow, ...more])]
  const problems = statuses.map((status) => [status, problemResponse(status)])
  return { ...Object.fromEntries(problems), ...own }
}

function problemResponse(status: ProblemStatus): object {
  const known = Object.entries(problemCatalogue).filter(([, [its]]) => its === status)
  const [[code, [, title]] = ['', ['', '']]] = known
  const example = {
    type: `/docs/problems#${code.toLowerCase()}`,
    title,
    status,
    detail: 'What is wrong, and what to do about it.',
    instance: '/api/v2/…',
    code,
    requestId: '0b7c5a52-3f0e-4a58-9d0c-6f4b1a2c9e11',
  }
  return {
    description: known.map(([, [, title]]) => title).join(' · '),
    content: { 'application/problem+json': { schema: { $ref: 'Problem#' }, example } },
  }
}

/** An answer without a body. */
export function nothing(description: string): TSchema {
  return Type.Null({ description })
}
