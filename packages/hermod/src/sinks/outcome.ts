/**
 * What became of one event at its destination. Outcomes are plain frozen values; what the engine
 * does with each is drawn in docs/guides/writing-a-sink.md.
 */
import { clip } from '../foreign-text.ts'
import { retryAfterMaxMs } from './retry-after.ts'

export const outcomeNames = [
  'delivered',
  'superseded',
  'retry',
  'split',
  'rejected',
  'misconfigured',
  'unavailable',
  'unknown',
] as const

export type OutcomeName = (typeof outcomeNames)[number]

export interface OutcomeDetails {
  /** Not before this many milliseconds from now; capped at one hour. */
  readonly afterMs?: number | undefined
  /** The far side's code or ours: `ECONNREFUSED`, `invalid_document_id`, `HMD_SINK_BROKEN`. */
  readonly code?: string | undefined
  /** For people; never a secret, never the payload. */
  readonly message?: string | undefined
  /** HTTP or SMTP status. */
  readonly status?: number | undefined
  /** The beginning of the far side's answer. */
  readonly excerpt?: string | undefined
}

export interface Outcome extends OutcomeDetails {
  readonly outcome: OutcomeName
  /** What the destination gave for it: a message id, a task id. */
  readonly receipt?: string | undefined
}

export const messageCharsMax = 500
export const excerptCharsMax = 2_000
export const codeCharsMax = 100
export const receiptCharsMax = 500

const DELIVERED: Outcome = Object.freeze({ outcome: 'delivered' })
const SUPERSEDED: Outcome = Object.freeze({ outcome: 'superseded' })

/** The destination acknowledged it. */
export function delivered(receipt?: string): Outcome {
  return receipt === undefined ? DELIVERED : makeOutcome('delivered', { receipt })
}

/** The destination already holds this version or a newer one. Counts as success. */
export function superseded(): Outcome {
  return SUPERSEDED
}

/** This event failed for a passing reason. Spends an attempt. */
export const retry = (details: OutcomeDetails = {}) => makeOutcome('retry', details)

/** The batch is too large, or one unknown event spoils it: send it again in halves. */
export const split = (details: OutcomeDetails = {}) => makeOutcome('split', details)

/** This event can never succeed as it is: dead, until an operator decides. */
export const rejected = (details: OutcomeDetails = {}) => makeOutcome('rejected', details)

/** Credentials, index, address or certificate are wrong. Spends nothing; the backlog waits. */
export const misconfigured = (details: OutcomeDetails = {}) => makeOutcome('misconfigured', details)

/** The destination is down or overloaded as a whole. Spends nothing; the backlog waits. */
export const unavailable = (details: OutcomeDetails = {}) => makeOutcome('unavailable', details)

/** Ledger sinks only: may or may not have been accepted, and cannot be asked. */
export const unknown = (details: OutcomeDetails = {}) => makeOutcome('unknown', details)

/** Keeps the known fields, within bounds and storable; drops the rest. */
export function makeOutcome(
  outcome: OutcomeName,
  details: OutcomeDetails & { readonly receipt?: string | undefined },
): Outcome {
  const { afterMs, code, message, status, excerpt, receipt } = details
  return Object.freeze({
    outcome,
    ...(isDelay(afterMs) && { afterMs: Math.min(Math.ceil(afterMs), retryAfterMaxMs) }),
    ...(code !== undefined && { code: clip(code, codeCharsMax) }),
    ...(message !== undefined && { message: clip(message, messageCharsMax) }),
    ...(Number.isInteger(status) && { status: status as number }),
    ...(excerpt !== undefined && { excerpt: clip(excerpt, excerptCharsMax) }),
    ...(receipt !== undefined && { receipt: clip(receipt, receiptCharsMax) }),
  })
}

function isDelay(value: unknown): value is number {
  return typeof value === 'number' && value >= 0
}
