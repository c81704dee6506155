/**
 * The default meaning of HTTP statuses and network errors; an adapter overrides single rows.
 * Nothing that may be the destination's fault ever spends an event's attempts.
 */
import type { HermodErrorCode } from '../errors.ts'
import {
  delivered,
  misconfigured,
  type Outcome,
  type OutcomeDetails,
  rejected,
  retry,
  split,
  unavailable,
  unknown,
} from './outcome.ts'
import { parseRetryAfter } from './retry-after.ts'

export interface MappingOptions {
  /** Events in the call: a batch is split before anything in it is rejected. */
  readonly items?: number | undefined
  /** The header `Retry-After`, as it came. */
  readonly retryAfter?: string | null | undefined
  readonly nowMs?: number | undefined
  /** A ledger sink that cannot de-duplicate: what may have arrived is `unknown`. */
  readonly ledger?: boolean | undefined
  readonly excerpt?: string | undefined
  readonly message?: string | undefined
  readonly code?: string | undefined
}

export function outcomeOfStatus(status: number, options: MappingOptions = {}): Outcome {
  const { items = 1, code, excerpt, message = `HTTP ${status}` } = options
  const details: OutcomeDetails = { status, code, message, excerpt }
  if (status >= 200 && status < 300) return delivered()
  if (status >= 300 && status < 400) return misconfigured(details)
  if (status >= 500) return ofServerError(status, details, options)
  switch (status) {
    case 401:
    case 402:
    case 403:
    case 404:
    case 407:
    case 410:
      return misconfigured(details)
    case 408:
    case 409:
    case 425:
      return retry(details)
    case 429:
      return unavailable(withAfter(details, options))
  }
  // No status, or 1xx as the final answer: this is not valid HTTP.
  if (!(status >= 400)) return unavailable(details)
  return items > 1 ? split(details) : rejected(details)
}

function ofServerError(status: number, details: OutcomeDetails, options: MappingOptions): Outcome {
  if (status === 501 || status === 505) return misconfigured(details)
  if (status === 500 && options.ledger) return unknown(details)
  return unavailable(withAfter(details, options))
}

function withAfter(details: OutcomeDetails, options: MappingOptions): OutcomeDetails {
  return { ...details, afterMs: parseRetryAfter(options.retryAfter, options.nowMs ?? Date.now()) }
}

/** The connection was never made, so nothing can have arrived. */
const UNREACHED = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'EAI_AGAIN',
  'EAI_FAIL',
  'ENOTFOUND',
  'UND_ERR_CONNECT_TIMEOUT',
  'HTTP_CONNECT_TIMEOUT',
])

/** The connection broke during the call: the request may or may not have arrived. */
const INTERRUPTED = new Set([
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ESOCKETTIMEDOUT',
  'EPROTO',
  'UND_ERR_SOCKET',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_RESPONSE_EXCEEDED_MAX_SIZE',
  'HTTP_TIMEOUT',
  'HTTP_ANSWER_TOO_LARGE',
  'HTTP_ANSWER_FOREIGN',
])

/** Certificates, host names, addresses: waiting does not help; somebody must change the configuration. */
const WRONG_SETUP =
  /^(CERT_|ERR_TLS_CERT|ERR_INVALID_URL$|ERR_INVALID_PROTOCOL$|ERR_SSL_WRONG_VERSION|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA)/

/** What a thrown value means when the adapter did not say it. */
export function outcomeOfError(error: unknown, options: MappingOptions = {}): Outcome {
  const { items = 1, ledger = false } = options
  if (!(error instanceof Error)) {
    const code = 'HMD_SINK_BROKEN' satisfies HermodErrorCode
    return retry({ code, message: `the sink threw ${describe(error)}` })
  }
  const status = statusOf(error)
  if (status !== undefined) return outcomeOfStatus(status, { message: error.message, ...options })
  const code = codeOf(error)
  const details = { code: code ?? error.name, message: error.message }
  if (isTimeout(error)) {
    const late = { ...details, code: 'HMD_SINK_DEADLINE' satisfies HermodErrorCode }
    return ledger ? unknown(late) : unavailable(late)
  }
  if (code !== undefined && UNREACHED.has(code)) return unavailable(details)
  if (code !== undefined && INTERRUPTED.has(code)) {
    return ledger ? unknown(details) : unavailable(details)
  }
  if (code !== undefined && WRONG_SETUP.test(code)) return misconfigured(details)
  return items > 1 ? split(details) : retry(details)
}

function describe(value: unknown): string {
  return typeof value === 'string' ? value : `a value of type ${typeof value}`
}

function isTimeout(error: Error): boolean {
  return error.name === 'TimeoutError' || error.name === 'AbortError'
}

/** `fetch` hides the reason in `cause`; several addresses tried make an AggregateError. */
function codeOf(error: Error): string | undefined {
  let link: unknown = error
  for (let depth = 0; depth < 5 && typeof link === 'object' && link !== null; depth++) {
    const { code, cause, errors } = link as { code?: unknown; cause?: unknown; errors?: unknown }
    if (typeof code === 'string') return code
    link = cause ?? (Array.isArray(errors) ? errors[0] : undefined)
  }
  return undefined
}

function statusOf(error: Error): number | undefined {
  const { status, statusCode } = error as { status?: unknown; statusCode?: unknown }
  const value = status ?? statusCode
  return Number.isInteger(value) && (value as number) >= 100 ? (value as number) : undefined
}
