/**
 * The contract of a destination. A sink translates events for one outside system and says, per
 * event, what became of it; it never touches the outbox tables and never decides about retries.
 */
import { HermodError, type HermodErrorCode } from '../errors.ts'
import type { OutboxEvent } from '../event.ts'
import { delivered, makeOutcome, type Outcome, type OutcomeName, outcomeNames, retry } from './outcome.ts'

export { clip } from '../foreign-text.ts'
export { fingerprint } from './fingerprint.ts'
export {
  codeCharsMax,
  delivered,
  excerptCharsMax,
  makeOutcome,
  messageCharsMax,
  misconfigured,
  type Outcome,
  type OutcomeDetails,
  type OutcomeName,
  outcomeNames,
  receiptCharsMax,
  rejected,
  retry,
  split,
  superseded,
  unavailable,
  unknown,
} from './outcome.ts'
export { type MappingOptions, outcomeOfError, outcomeOfStatus } from './outcome-mapping.ts'

export interface Capabilities {
  /** Most events in one call. */
  readonly itemsMax: number
  /** Most payload bytes in one call. */
  readonly bytesMax: number
  /** Most payload bytes of one event. */
  readonly itemBytesMax: number
  /** The destination answers per event, not for the batch as a whole. */
  readonly perItemResult: boolean
  /** The destination answers with a task that ends later. */
  readonly asynchronous: boolean
  /** The destination refuses an older version by itself (position as external version). */
  readonly externalVersion: boolean
  /**
   * Within one call, an event is not applied when an earlier one of its aggregate failed. Without
   * it a call of an ordered subscription holds one event of an aggregate.
   */
  readonly keepsOrder: boolean
  /** Every effect is tracked by a row of its own: mail, SMS. */
  readonly ledger: boolean
}

export interface DeliveryContext {
  /** Aborted at the deadline, when the lease is lost, and when the worker stops. */
  readonly signal: AbortSignal
  readonly subscription: string
  /** Milliseconds this call may take, counted from its start. */
  readonly deadlineMs: number
  /** Ledger sinks: records `sending` right before the effect of this one event. */
  sending(event: OutboxEvent, note?: object): Promise<void>
  /** What became of this one event, said before the call ends: it stands, also when the call then throws. */
  answered(event: OutboxEvent, outcome: Outcome): void
}

export interface ProbeContext {
  readonly signal: AbortSignal
  readonly subscription: string
}

/** Longest handle, in characters: it is stored with the lanes. */
export const handleMax = 2_000

/** The destination took the whole call as a task; the handle (1 to 2,000 characters) finds it. */
export interface Parked {
  readonly parked: string
}

/**
 * One outcome per event, in the order given; nothing = all delivered; parked = `poll` tells later.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a sink may end without a return
export type DeliverResult = readonly Outcome[] | Parked | void

export interface Sink {
  readonly name: string
  readonly capabilities?: Partial<Capabilities>
  /** A local check. If it returns a sentence, the event is rejected for that reason without a call. */
  validate?(event: OutboxEvent): string | undefined
  /** One outcome per event, in the order given; nothing = all delivered; or a parked call. */
  deliver(events: readonly OutboxEvent[], context: DeliveryContext): Promise<DeliverResult>
  /**
   * What became of parked calls, one answer per handle in the order given: an outcome for everything
   * the handle covers, or undefined while the destination still works on it.
   */
  poll?(handles: readonly string[], context: ProbeContext): Promise<readonly (Outcome | undefined)[]>
  /** Throws what is wrong. The circuit breaker calls it too. */
  probe?(context: ProbeContext): Promise<void>
  close?(): Promise<void>
}

/** A sink may be as small as a function. */
export type SinkFunction = (
  events: readonly OutboxEvent[],
  context: DeliveryContext,
) => Promise<DeliverResult> | DeliverResult

export function isParked(result: unknown): result is Parked {
  if (typeof result !== 'object' || result === null) return false
  return typeof (result as Partial<Parked>).parked === 'string'
}

export const defaultCapabilities: Capabilities = Object.freeze({
  itemsMax: 5_000,
  bytesMax: 16 * 1024 * 1024,
  itemBytesMax: Number.MAX_SAFE_INTEGER,
  perItemResult: true,
  asynchronous: false,
  externalVersion: false,
  keepsOrder: false,
  ledger: false,
})

export function capabilitiesOf(sink: Sink): Capabilities {
  return Object.freeze({ ...defaultCapabilities, ...sink.capabilities })
}

export function asSink(sinkOrFunction: Sink | SinkFunction): Sink {
  if (typeof sinkOrFunction === 'function') {
    const deliver = sinkOrFunction
    const name = deliver.name || 'function'
    return Object.freeze({
      name,
      deliver: async (events, context) => deliver(events, context),
    } satisfies Sink)
  }
  if (isSink(sinkOrFunction)) return sinkOrFunction
  throw new HermodError('HMD_OPTION_INVALID', 'sink must be a function or have a name and deliver()', {
    field: 'sink',
  })
}

function isSink(value: unknown): value is Sink {
  if (typeof value !== 'object' || value === null) return false
  const { name, deliver } = value as Partial<Sink>
  return typeof name === 'string' && name !== '' && typeof deliver === 'function'
}

/**
 * Makes one good outcome per event of whatever a sink returned. A result of the wrong length
 * settles nothing: nobody can tell which outcome belongs to which event.
 */
export function normaliseOutcomes(
  result: unknown,
  events: readonly unknown[],
  { ledger = false } = {},
): readonly Outcome[] {
  if (result === undefined) return events.map(() => delivered())
  if (isParked(result)) return events.map(() => broken('returned a handle it may not return'))
  if (!Array.isArray(result)) return events.map(() => broken(`returned ${kindOf(result)}`))
  if (result.length !== events.length) {
    const says = `returned ${result.length} outcomes for ${events.length} events`
    return events.map(() => broken(says))
  }
  return Array.from(result, (outcome) => normalise(outcome, ledger))
}

/** The same for the result of poll(). A result of the wrong shape settles no task. */
export function normalisePolled(result: unknown, handles: readonly string[]): readonly (Outcome | undefined)[] {
  if (!Array.isArray(result) || result.length !== handles.length) {
    const says = `poll() of the sink returned no list of ${handles.length} answers`
    throw new HermodError('HMD_SINK_BROKEN', says)
  }
  return Array.from(result, (outcome) => (outcome === undefined ? undefined : normalise(outcome, false)))
}

function normalise(given: unknown, ledger: boolean): Outcome {
  if (given === delivered()) return given as Outcome
  if (typeof given !== 'object' || given === null) return broken(`returned ${kindOf(given)}`)
  const { outcome } = given as { outcome?: unknown }
  if (!outcomeNames.includes(outcome as OutcomeName)) return broken('returned no known outcome')
  if (outcome === 'unknown' && !ledger) return broken('returned unknown without being a ledger sink')
  return makeOutcome(outcome as OutcomeName, given)
}

/** The sink broke its contract: the event is tried again, and the reason is on record. */
export function broken(says: string): Outcome {
  const code = 'HMD_SINK_BROKEN' satisfies HermodErrorCode
  return retry({ code, message: `the sink ${says}` })
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return typeof value === 'object' ? 'an object that is no list' : `a ${typeof value}`
}
