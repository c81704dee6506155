/**
 * Typed events: one declaration gives payload types to `emit` and to sinks, refuses what is not
 * declared, and brings old payloads to the current version when they are read (v1 → v2 → …).
 */
import { callable, integer, optional, type Problem, readGroup, refuse, rule } from './check-options.ts'
import { HermodError } from './errors.ts'
import type { NewEvent, OutboxEvent } from './event.ts'
import type { EventDefinitions } from './event-definitions.ts'
import { eventTypeProblem, versionMax } from './event-names.ts'
import { didYouMean } from './nearest.ts'

declare const PAYLOAD: unique symbol

/** Carries a type and nothing else; made by `type<Document>()`. */
export interface PayloadType<P> {
  readonly [PAYLOAD]?: P
}

/** `payload: type<Document>()` says the payload's type where no parser does. */
export function type<P>(): PayloadType<P> {
  return Object.freeze({})
}

export interface EventDefinition {
  /** The current version of the payload; 1 unless said. */
  readonly version?: number
  // biome-ignore lint/suspicious/noExplicitAny: holds any payload type, read back by inference
  readonly payload?: PayloadType<any>
  /** `{ 1: (v1) => v2, 2: (v2) => v3 }`: applied in turn when an older payload is read. */
  // biome-ignore lint/suspicious/noExplicitAny: the shape of an old version exists only here
  readonly upcast?: Readonly<Record<number, (payload: any) => unknown>>
  /** Checks a payload of the current version when emitted and when read; throws when it is bad. */
  readonly parse?: (payload: unknown) => unknown
}

type DefinitionMap = Readonly<Record<string, EventDefinition>>

export interface DefinedEvents<M extends DefinitionMap = DefinitionMap> extends EventDefinitions {
  readonly definitions: M
}

type MapOf<D> = D extends DefinedEvents<infer M> ? M : never
export type EventTypeOf<D> = Extract<keyof MapOf<D>, string>

type PayloadIn<T> = T extends { readonly payload: PayloadType<infer P> }
  ? P
  : T extends { readonly parse: (payload: never) => infer P }
    ? P
    : unknown

/** The payload of one declared type. */
export type PayloadOf<D, K extends EventTypeOf<D>> = PayloadIn<MapOf<D>[K]>

type PayloadField<P> = unknown extends P ? { readonly payload?: P } : { readonly payload: P }

/** What emit accepts with this declaration. */
export type NewEventOf<D> = {
  [K in EventTypeOf<D>]: Omit<NewEvent, 'type' | 'payload'> & { readonly type: K } & PayloadField<PayloadOf<D, K>>
}[EventTypeOf<D>]

type Matching<D, Pattern extends string> = Pattern extends '*'
  ? EventTypeOf<D>
  : Pattern extends `${infer Noun}.*`
    ? Extract<EventTypeOf<D>, `${Noun}.${string}`>
    : Extract<EventTypeOf<D>, Pattern>

/** What a sink hears with these patterns: a union discriminated by `type`. */
export type OutboxEventOf<D, Pattern extends string = '*'> = {
  [K in Matching<D, Pattern>]: OutboxEvent<PayloadOf<D, K>> & { readonly type: K }
}[Matching<D, Pattern>]

export function defineEvents<const M extends DefinitionMap>(definitions: M): DefinedEvents<M> {
  const known = checkDefinitions(definitions)
  const types = Object.freeze([...known.keys()])
  const find = (type: string, version: number | undefined, at: string): Known => {
    const found = known.get(type)
    if (found === undefined) {
      throw unknown(`${at}type`, `${type} is not a declared event type${didYouMean(type, types)}`)
    }
    if (version === undefined || version === found.version || found.upcast.has(version)) return found
    throw unknown(`${at}version`, `version ${version} of ${type} is not declared`)
  }
  return Object.freeze<DefinedEvents<M>>({
    definitions,
    types,
    resolve: (type, version, at = '') => {
      const found = find(type, version, at)
      return version ?? found.version
    },
    verify: (type, version, text, where) => {
      const found = find(type, version, '')
      if (version === found.version && found.parse) parse(found.parse, JSON.parse(text), where)
    },
    read: (type, version, payload) => bringUp(find(type, version, ''), type, version, payload),
  })
}

interface Known {
  readonly version: number
  readonly upcast: ReadonlyMap<number, (payload: unknown) => unknown>
  readonly parse: ((payload: unknown) => unknown) | undefined
}

/** A reference event (null) has no payload to bring up to date. */
function bringUp(known: Known, type: string, from: number, payload: unknown): unknown {
  if (payload === null) return null
  let value: unknown = payload
  for (let version = from; version < known.version; version++) {
    const upcast = known.upcast.get(version)
    if (upcast === undefined) throw unknown('version', `no upcaster of ${type} from ${version}`)
    value = parse(upcast, value, `${type} v${version} → v${version + 1}`)
  }
  return known.parse ? parse(known.parse, value, type) : value
}

function parse(read: (payload: unknown) => unknown, value: unknown, where: string): unknown {
  try {
    return read(value)
  } catch (cause) {
    const says = cause instanceof Error ? cause.message : String(cause)
    throw new HermodError('HMD_PAYLOAD_INVALID', `${where}: ${says.slice(0, 500)}`, {
      field: where,
      cause,
    })
  }
}

function unknown(field: string, says: string): HermodError {
  return new HermodError('HMD_EVENT_UNKNOWN', says, { field })
}

const definitionSpec = {
  version: integer({ min: 1, max: versionMax, default: 1 }),
  payload: rule<unknown>((value): unknown => value),
  upcast: optional(rule<Record<string, unknown>>(readUpcasters)),
  parse: optional(callable<(payload: unknown) => unknown>()),
}

function readUpcasters(value: unknown, field: string, problems: Problem[]) {
  const given: Record<string, unknown> = typeof value === 'object' && value !== null ? { ...value } : {}
  for (const [version, upcast] of Object.entries(given)) {
    callable().read(upcast, `${field}[${version}]`, problems)
  }
  return given
}

/** All problems of the whole declaration at once. */
function checkDefinitions(definitions: DefinitionMap): Map<string, Known> {
  const problems: Problem[] = []
  const known = new Map<string, Known>()
  for (const [type, definition] of Object.entries(definitions)) {
    const name = eventTypeProblem(type)
    if (name !== undefined) problems.push({ field: type, says: name })
    const { version, upcast, parse } = readGroup(definition, type, definitionSpec, problems)
    const steps = Object.entries(upcast ?? {}) as [string, (payload: unknown) => unknown][]
    const byVersion = new Map(steps.map(([from, step]) => [Number(from), step]))
    checkChain([...byVersion.keys()], version, `${type}.upcast`, problems)
    known.set(type, { version, upcast: byVersion, parse })
  }
  refuse('defineEvents', problems)
  return known
}

/** From the oldest version still read up to the current one, without a gap. */
function checkChain(from: number[], version: number, field: string, problems: Problem[]): void {
  if (from.length === 0) return
  const first = Math.min(...from)
  for (const step of from) {
    if (Number.isInteger(step) && step >= 1 && step < version) continue
    problems.push({
      field: `${field}[${step}]`,
      says: `must be a version from 1 to ${version - 1}`,
    })
  }
  for (let step = first; step < version; step++) {
    if (from.includes(step)) continue
    problems.push({
      field: `${field}[${step}]`,
      says: `is missing: version ${first} cannot reach ${version}`,
    })
  }
}
