/**
 * What the engine reports to a listener: one typed interface from which logs, metrics and traces are made.
 * A listener cannot disturb the engine, whatever it throws.
 */
import type { HermodErrorCode } from './errors.ts'
import type { OutcomeName } from './sinks/outcome.ts'

export interface StepEvent {
  /** Events numbered by this step. */
  readonly numbered: number
  readonly durationMs: number
  /** Head of the log after the step. */
  readonly position: bigint
}

export interface ClaimEvent {
  readonly subscription: string
  readonly lanes: readonly number[]
  readonly durationMs: number
}

/** One call to a sink. */
export interface DeliveryEvent {
  readonly subscription: string
  readonly sink: string
  readonly lane: number
  readonly from: bigint
  readonly to: bigint
  readonly events: number
  /** Of their payloads. */
  readonly bytes: number
  readonly durationMs: number
  readonly outcomes: Readonly<Partial<Record<OutcomeName, number>>>
  /** From the first event that has one: links the call to the trace that emitted it. */
  readonly traceparent?: string | undefined
}

/** One event that was not simply delivered. */
export interface OutcomeEvent {
  readonly subscription: string
  readonly lane: number
  readonly position: bigint
  readonly type: string
  readonly outcome: OutcomeName
  readonly attempt: number
  readonly code?: string | undefined
  readonly status?: number | undefined
  readonly fingerprint?: string | undefined
}

export interface RetryEvent {
  readonly subscription: string
  readonly lane: number
  readonly position: bigint
  readonly attempt: number
  readonly delayMs: number
}

export interface LeaseLostEvent {
  readonly subscription: string
  readonly lane: number
  readonly fence: bigint
}

export interface BreakerEvent {
  readonly subscription: string
  readonly state: 'closed' | 'open' | 'probing'
  readonly reason?: string | undefined
  readonly untilMs?: number | undefined
}

export interface WarningEvent {
  readonly code: HermodErrorCode
  readonly message: string
  readonly subscription?: string | undefined
  readonly details?: Readonly<Record<string, unknown>> | undefined
}

/** A journey made progress, was paused, or ended. */
export interface JourneyEvent {
  readonly id: bigint
  readonly kind: string
  /** The subscription, or the index. */
  readonly subject: string
  readonly state: string
  readonly phase: string | null
  /** done, total, ratePerSecond, etaMs, and what the kind adds. */
  readonly progress: Readonly<Record<string, unknown>>
  readonly error?: string | undefined
}

export interface ErrorEvent {
  /** What was being done: `step`, `claim`, `settle`, `upkeep`, … */
  readonly during: string
  readonly error: unknown
  readonly subscription?: string | undefined
}

/** What `verify` found: documents that are not what the source says. */
export interface DriftEvent {
  readonly index: string
  readonly subscription: string
  /** Documents on either side. */
  readonly source: number
  readonly indexed: number
  readonly missing: number
  readonly orphaned: number
  readonly stale: number
}

export interface Listener {
  step?(event: StepEvent): void
  claim?(event: ClaimEvent): void
  delivery?(event: DeliveryEvent): void
  outcome?(event: OutcomeEvent): void
  retry?(event: RetryEvent): void
  leaseLost?(event: LeaseLostEvent): void
  breaker?(event: BreakerEvent): void
  journey?(event: JourneyEvent): void
  drift?(event: DriftEvent): void
  warning?(event: WarningEvent): void
  error?(event: ErrorEvent): void
}

export type ListenerName = keyof Listener
export type ListenerData<N extends ListenerName> = Parameters<NonNullable<Listener[N]>>[0]

export const listenerNames = [
  'step',
  'claim',
  'delivery',
  'outcome',
  'retry',
  'leaseLost',
  'breaker',
  'journey',
  'drift',
  'warning',
  'error',
] as const satisfies readonly ListenerName[]

/** Never throws, never waits: a rejected promise of an async listener is swallowed too. */
export function notify<N extends ListenerName>(listener: Listener | undefined, name: N, data: ListenerData<N>): void {
  try {
    const hear = listener?.[name] as ((data: ListenerData<N>) => unknown) | undefined
    const result = hear?.call(listener, data)
    if (result instanceof Promise) result.catch(() => {})
  } catch {
    // An error of the listener is ignored.
  }
}

export interface TraceParent {
  readonly traceId: string
  readonly parentId: string
  readonly sampled: boolean
}

/** W3C Trace Context: later versions may append fields, version 00 may not. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

export function parseTraceparent(value: string | null | undefined): TraceParent | undefined {
  const [, version, traceId, parentId, flags, more] = TRACEPARENT.exec(value ?? '') ?? []
  if (traceId === undefined || parentId === undefined || flags === undefined) return undefined
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined
  return { traceId, parentId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** The trace context worth passing on: `tracestate` means nothing without a valid `traceparent`. */
export function traceHeaders(headers: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const { traceparent, tracestate } = headers
  if (traceparent === undefined || parseTraceparent(traceparent) === undefined) return {}
  if (tracestate === undefined || !/^[\x20-\x7e]{1,512}$/.test(tracestate)) return { traceparent }
  return { traceparent, tracestate }
}
