/** From whatever was thrown to one RFC 9457 answer: coded, without stack, without secrets. */

import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { HermodError } from 'hermod'
import { Problem, type ProblemCode } from '../problems.ts'
import { fieldProblems } from './validate.ts'

const docs = '/docs/problems#'

export function answerProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const problem = asProblem(error)
  if (problem.status >= 500) {
    const { message, code } = (problem.cause ?? problem) as { message?: string; code?: string }
    request.log.error({ code: problem.code, cause: code, detail: message }, problem.title)
  }
  for (const [name, value] of Object.entries(problem.headers)) reply.header(name, value)
  reply
    .code(problem.status)
    .type('application/problem+json')
    .send(JSON.stringify(bodyOf(problem, request)))
}

function bodyOf(problem: Problem, request: FastifyRequest): object {
  return {
    type: `${docs}${problem.code.toLowerCase()}`,
    title: problem.title,
    status: problem.status,
    detail: problem.message,
    instance: request.url.split('?')[0],
    code: problem.code,
    requestId: request.id,
    ...(problem.errors.length > 0 && { errors: problem.errors }),
    ...problem.facts,
  }
}

/** Codes of Fastify and its plugins that are the caller's doing. */
const ofFramework: Readonly<Record<string, ProblemCode>> = {
  FST_ERR_CTP_INVALID_JSON_BODY: 'HMD_JSON_INVALID',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'HMD_JSON_INVALID',
  FST_ERR_CTP_BODY_TOO_LARGE: 'HMD_BODY_TOO_LARGE',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'HMD_MEDIA_TYPE',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'HMD_REQUEST_INVALID',
  FST_ERR_BAD_URL: 'HMD_REQUEST_INVALID',
  FST_UNDER_PRESSURE: 'HMD_UNAVAILABLE',
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  const { code, validation, validationContext, message } = error as FastifyError
  if (validation !== undefined) {
    const errors = fieldProblems(validation as never, String(validationContext))
    const detail = errors.map(({ pointer, detail }) => `${pointer} ${detail}`).join('; ')
    return new Problem('HMD_REQUEST_INVALID', detail, { errors })
  }
  const known = ofFramework[code]
  if (known !== undefined) return new Problem(known, message, { headers: laterIf(known) })
  if (error instanceof SyntaxError) return new Problem('HMD_JSON_INVALID', message)
  if (isAway(error)) return away(error)
  return new Problem('HMD_INTERNAL', 'The request failed; the log names it by its requestId.', {
    cause: error,
  })
}

function laterIf(code: ProblemCode): Record<string, string> {
  return code === 'HMD_UNAVAILABLE' ? { 'retry-after': '5' } : {}
}

/** The database does not answer, refuses connections, or has too many of them. */
function isAway(error: unknown): boolean {
  if (error instanceof HermodError) return error.code === 'HMD_DATABASE_UNREACHABLE'
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  if (typeof code === 'string' && /^(08|57P0|53|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_)/.test(code)) {
    return true
  }
  return /connection terminated|timeout exceeded when trying to connect/i.test(String(message))
}

function away(cause: unknown): Problem {
  return new Problem('HMD_UNAVAILABLE', 'The database does not answer; try again shortly.', {
    headers: { 'retry-after': '5' },
    cause,
  })
}
