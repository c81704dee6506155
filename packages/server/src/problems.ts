/**
 * Every error the API can answer with: its code, its status and what it means (RFC 9457). The
 * reference in docs/reference/problems.md lists exactly these; a test compares the two.
 */
export const problemCatalogue = {
  HMD_REQUEST_INVALID: [400, 'The request is not valid'],
  HMD_JSON_INVALID: [400, 'The body is not valid JSON'],
  HMD_CURSOR_INVALID: [400, 'The cursor does not belong to this list'],
  HMD_KEY_MISSING: [400, 'An Idempotency-Key is needed here'],
  HMD_UNAUTHENTICATED: [401, 'Who is asking is not known'],
  HMD_FORBIDDEN: [403, 'You may not do this'],
  HMD_SIGN_IN_AGAIN: [403, 'Sign in again to do this'],
  HMD_NOT_APPROVER: [403, 'Only listed approvers decide'],
  HMD_OWN_DOCUMENT: [403, 'Nobody decides about their own document'],
  HMD_NOT_FOUND: [404, 'There is no such thing, or it is not yours to see'],
  HMD_METHOD_NOT_ALLOWED: [405, 'This resource does not know that method'],
  HMD_REQUEST_SLOW: [408, 'The request took too long to arrive'],
  HMD_CONFLICT: [409, 'It is not in a state that allows this'],
  HMD_TRANSITION_ILLEGAL: [409, 'This status does not lead to that one'],
  HMD_NOT_IN_REVIEW: [409, 'It is not under review'],
  HMD_ALREADY_DECIDED: [409, 'You have decided already'],
  HMD_NOT_DECIDED: [409, 'You have not decided yet'],
  HMD_FILE_REGISTERED: [409, 'This file belongs to another document'],
  HMD_KEY_IN_USE: [409, 'A request with this Idempotency-Key is still running'],
  HMD_VERSION_STALE: [412, 'It was changed since you read it'],
  HMD_BODY_TOO_LARGE: [413, 'The body is too large'],
  HMD_MEDIA_TYPE: [415, 'The media type is not understood'],
  HMD_KEY_REUSED: [422, 'The Idempotency-Key was used for another request'],
  HMD_RULE_BROKEN: [422, 'The request breaks a rule'],
  HMD_IMPORT_REFUSED: [422, 'Rows are wrong, so nothing was imported'],
  HMD_VERSION_NEEDED: [428, 'If-Match is needed'],
  HMD_RATE_LIMITED: [429, 'Too many requests'],
  HMD_HEADERS_TOO_LARGE: [431, 'The headers are too large'],
  HMD_INTERNAL: [500, 'Something failed on our side'],
  HMD_UNAVAILABLE: [503, 'Not available right now'],
} as const satisfies Readonly<Record<string, readonly [status: number, title: string]>>

export type ProblemCode = keyof typeof problemCatalogue

export interface FieldProblem {
  /** JSON pointer into the body, or `?limit`, `:id`, `header If-Match`. */
  readonly pointer: string
  readonly detail: string
}

export interface ProblemOptions {
  readonly errors?: readonly FieldProblem[]
  /** Facts for programs: the current version, the allowed transitions. */
  readonly facts?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string>>
  readonly cause?: unknown
}

/** Thrown anywhere below a route; answered as application/problem+json. */
export class Problem extends Error {
  override readonly name = 'Problem'
  readonly code: ProblemCode
  readonly status: number
  readonly title: string
  readonly errors: readonly FieldProblem[]
  readonly facts: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>

  constructor(code: ProblemCode, detail: string, options: ProblemOptions = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    const [status, title] = problemCatalogue[code]
    this.status = status
    this.title = title
    this.errors = options.errors ?? []
    this.facts = options.facts ?? {}
    this.headers = options.headers ?? {}
  }
}

export function notFound(what: string): Problem {
  return new Problem('HMD_NOT_FOUND', `There is no ${what}, or it is not yours to see.`)
}

export function invalid(pointer: string, detail: string): Problem {
  return new Problem('HMD_REQUEST_INVALID', `${pointer} ${detail}`, {
    errors: [{ pointer, detail }],
  })
}
