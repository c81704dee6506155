/**
 * The nouns: an event as the caller emits it, as it is sent to PostgreSQL, and as a sink gets it.
 * Everything is refused here, before anything is sent.
 */

import { HermodError } from './errors.ts'
import type { EventDefinitions } from './event-definitions.ts'
import { headersToText, invalid, isLongerThan, keyToText, notBeforeToText } from './event-fields.ts'
import { aggregateTypeProblem, eventTypeProblem, versionMax } from './event-names.ts'
import { didYouMean } from './nearest.ts'
import { payloadToText, unlistableText } from './payload.ts'

export { DeliveredEvent, type DeliveredEventFields } from './delivered-event.ts'
export type { OutboxEvent } from './outbox-event.ts'

export const eventsMax = 10_000
export const aggregateIdBytesMax = 512

export interface NewEvent<P = unknown> {
  /** `noun.verbed`, lower case and dotted: `document.updated`. */
  readonly type: string
  readonly aggregate: readonly [type: string, id: string | number | bigint]
  /** Left out = a reference event: the subscription loads the rows at delivery. */
  readonly payload?: P
  /** Version of the payload's shape; 1, or the declared one with typed events. */
  readonly version?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Not delivered before; a Date or an ISO time with its zone. */
  readonly notBefore?: Date | string
  /** Idempotency key, at most 200 bytes: emitting twice is one event. */
  readonly key?: string
}

/** Checked and turned into text: ready to be bound as parameters. */
export interface PreparedEvent {
  readonly type: string
  readonly aggregateType: string
  readonly aggregateId: string
  readonly payload: string
  /** Bytes of the payload's JSON. */
  readonly bytes: number
  readonly version: number
  readonly headers: string | null
  readonly notBefore: string | null
  readonly key: string | null
}

const FIELDS = new Set(['type', 'aggregate', 'payload', 'version', 'headers', 'notBefore', 'key'])
/** Checks one event or many, all or nothing; errors name the event (`events[17]`). */
export function prepareEvents(
  input: NewEvent | readonly NewEvent[],
  known?: EventDefinitions,
  nowMs: number = Date.now(),
): PreparedEvent[] {
  if (!Array.isArray(input)) return [prepare(input as NewEvent, '', known, nowMs)]
  if (input.length > eventsMax) {
    const says = `${input.length} events in one call, at most ${eventsMax} are allowed`
    throw new HermodError('HMD_EVENT_LIMIT', says, {
      field: 'events',
      details: { count: input.length, countMax: eventsMax },
    })
  }
  const prepared = new Array<PreparedEvent>(input.length)
  for (let index = 0; index < input.length; index++) {
    prepared[index] = prepare(input[index], `events[${index}].`, known, nowMs)
  }
  return prepared
}

/** `at` is the prefix of a field's name in errors: `events[17].` or nothing. */
function prepare(
  event: NewEvent | undefined,
  at: string,
  known: EventDefinitions | undefined,
  nowMs: number,
): PreparedEvent {
  if (typeof event !== 'object' || event === null) {
    throw invalid(at.slice(0, -1) || 'event', 'must be an object with type and aggregate')
  }
  refuseUnknownFields(event, at)
  const type = checkType(event.type, `${at}type`)
  const aggregate = checkAggregate(event.aggregate, at)
  const version = checkVersion(event.version, type, at, known)
  const payload = 'payload' in event ? payloadToText(event.payload, `${at}payload`) : NO_PAYLOAD
  if (payload !== NO_PAYLOAD) known?.verify(type, version, payload.text, `${at}payload`)
  return {
    type,
    aggregateType: aggregate[0],
    aggregateId: aggregate[1],
    payload: payload.text,
    bytes: payload.bytes,
    version,
    headers: event.headers === undefined ? null : headersToText(event.headers, `${at}headers`),
    notBefore: event.notBefore === undefined ? null : notBeforeToText(event.notBefore, `${at}notBefore`, nowMs),
    key: event.key === undefined ? null : keyToText(event.key, `${at}key`),
  }
}

const NO_PAYLOAD = Object.freeze({ text: 'null', bytes: 4 })

function refuseUnknownFields(event: NewEvent, at: string): void {
  for (const field in event) {
    if (FIELDS.has(field)) continue
    const says = `${at}${field} is not a field of an event${didYouMean(field, FIELDS)}`
    throw new HermodError('HMD_OPTION_UNKNOWN', says, { field: at + field })
  }
}

function checkType(type: unknown, field: string): string {
  const problem = eventTypeProblem(type)
  if (problem !== undefined) throw invalid(field, problem)
  return type as string
}

function checkAggregate(aggregate: unknown, at: string): [type: string, id: string] {
  if (!Array.isArray(aggregate) || aggregate.length !== 2) {
    throw invalid(`${at}aggregate`, "must be [type, id], like ['document', 42]")
  }
  const [type, id] = aggregate as unknown[]
  const problem = aggregateTypeProblem(type)
  if (problem !== undefined) throw invalid(`${at}aggregate[0]`, problem)
  return [type as string, checkAggregateId(id, `${at}aggregate[1]`)]
}

function checkAggregateId(id: unknown, field: string): string {
  if (typeof id === 'bigint') return String(id)
  if (typeof id === 'number') {
    if (Number.isSafeInteger(id)) return String(id)
    throw invalid(field, 'must be a whole number up to 2^53; use a string or BigInt beyond')
  }
  if (typeof id !== 'string') throw invalid(field, 'must be a string, a whole number or a BigInt')
  if (id === '') throw invalid(field, 'must not be empty')
  if (isLongerThan(id, aggregateIdBytesMax)) {
    throw invalid(field, `must be at most ${aggregateIdBytesMax} bytes`)
  }
  const problem = unlistableText(id)
  if (problem !== undefined) throw invalid(field, problem)
  return id
}

function checkVersion(version: unknown, type: string, at: string, known: EventDefinitions | undefined): number {
  const given = version ?? undefined
  if (given !== undefined && !isVersion(given)) {
    throw invalid(`${at}version`, `must be a whole number from 1 to ${versionMax}`)
  }
  return known === undefined ? (given ?? 1) : known.resolve(type, given, at)
}

function isVersion(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= versionMax
}
