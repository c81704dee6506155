/** From whatever was thrown to one RFC 9457 answer: coded, without stack, without secrets. */
import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { HermodError } from 'hermod'
import { failureOf } from '../log-fields.ts'
import { type FieldProblem, Problem, type ProblemCode } from '../problems.ts'
import { fieldProblems } from '../validate.ts'

/** Served by problem-page.ts. */
const page = '/docs/problems'

/** Most field problems in one answer. */
const errorsMax = 50

export function answerProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const problem = asProblem(error)
  if (problem.status >= 500) request.log.error(failureOf(problem), problem.title)
  for (const [name, value] of Object.entries(problem.headers)) reply.header(name, value)
  reply
    .code(problem.status)
    .type('application/problem+json')
    .send(JSON.stringify(bodyOf(problem, request)))
}

function bodyOf(problem: Problem, request: Pick<FastifyRequest, 'url' | 'id'>): object {
  const { code, title, status, message: detail, facts } = problem
  const errors = problem.errors.slice(0, errorsMax)
  return {
    ...facts,
    type: `${page}#${code.toLowerCase()}`,
    title,
    status,
    detail,
    instance: request.url.split('?')[0],
    code,
    requestId: request.id,
    ...(errors.length > 0 && { errors }),
  }
}

const ofParser: Readonly<Record<string, [ProblemCode, string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: ['HMD_REQUEST_SLOW', 'Send the headers within 15 s.'],
  HPE_HEADER_OVERFLOW: ['HMD_HEADERS_TOO_LARGE', 'Headers may have 16,384 bytes together.'],
}

/** A malformed HTTP request is answered on the raw socket, which is then closed. */
export function answerClientError(error: { readonly code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const [code, detail] = ofParser[error.code ?? ''] ?? ['HMD_REQUEST_INVALID', 'This is not a valid HTTP request.']
  const problem = new Problem(code, detail)
  const body = JSON.stringify(bodyOf(problem, { url: '', id: randomUUID() }))
  socket.end(
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\nconnection: close\r\n` +
      `content-type: application/problem+json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

/** Codes of Fastify and its plugins that are errors of the caller. */
const ofFramework: Readonly<Record<string, ProblemCode>> = {
  FST_ERR_CTP_INVALID_JSON_BODY: 'HMD_JSON_INVALID',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'HMD_JSON_INVALID',
  FST_ERR_CTP_BODY_TOO_LARGE: 'HMD_BODY_TOO_LARGE',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'HMD_MEDIA_TYPE',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'HMD_REQUEST_INVALID',
  FST_ERR_BAD_URL: 'HMD_REQUEST_INVALID',
  FST_ERR_MAX_PARAM_LENGTH: 'HMD_NOT_FOUND',
  FST_ERR_ROUTE_MISSING_CONTENT_TYPE: 'HMD_MEDIA_TYPE',
}

/** What else plugins refuse; a path that leads out of a folder is one that does not exist. */
const ofStatus: Readonly<Record<number, ProblemCode>> = {
  400: 'HMD_REQUEST_INVALID',
  403: 'HMD_NOT_FOUND',
  404: 'HMD_NOT_FOUND',
  413: 'HMD_BODY_TOO_LARGE',
  415: 'HMD_MEDIA_TYPE',
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  const { code, validation, validationContext, message, statusCode } = error as FastifyError
  if (validation !== undefined) {
    const errors = fieldProblems(validation as never, String(validationContext))
    return new Problem('HMD_REQUEST_INVALID', sentenceOf(errors), { errors })
  }
  const known = ofFramework[code]
  if (known !== undefined) return new Problem(known, message)
  const ofCaller = ofStatus[statusCode ?? 500]
  if (ofCaller !== undefined) return new Problem(ofCaller, message)
  if (isAway(error)) return away(error)
  return new Problem('HMD_INTERNAL', 'The request failed; the log names it by its requestId.', {
    cause: error,
  })
}

/** The first few in words; all of them are in `errors`. */
function sentenceOf(errors: readonly FieldProblem[]): string {
  const told = errors.slice(0, 5).map(({ pointer, detail }) => `${pointer} ${detail}`)
  const more = errors.length - told.length
  return more > 0 ? `${told.join('; ')}; and ${more} more` : told.join('; ')
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
