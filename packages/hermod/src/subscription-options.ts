/** The options of a subscription: filter, sink and policy, with their defaults and bounds. */
import {
  type Checked,
  callable,
  decimal,
  flag,
  group,
  integer,
  list,
  oneOf,
  optional,
  type Problem,
  readGroup,
  refuse,
  rule,
  text,
  withDefault,
} from './check-options.ts'
import type { HermodError } from './errors.ts'
import type { OutboxEvent } from './event.ts'
import { timeOf } from './event-fields.ts'
import { aggregateTypeProblem } from './event-names.ts'
import { validatePattern } from './filter.ts'
import { payloadToText } from './payload.ts'
import { asSink, type Sink, type SinkFunction } from './sinks/sink.ts'
import type { RetryPolicy } from './worker/retry.ts'

/** Where a new subscription starts. */
export type StartFrom =
  | 'now'
  | 'beginning'
  | { readonly position: bigint | number | string }
  | { readonly time: Date | string }

export type ResolvedStartFrom = 'now' | 'beginning' | { readonly position: bigint } | { readonly time: Date }

/**
 * Reads the current rows just before delivery; called with events of one aggregate type. The map
 * is keyed by aggregate id; an id that is not in it no longer exists and is deleted at the sink.
 */
export type Load = (
  events: readonly OutboxEvent[],
  context: { readonly signal: AbortSignal },
) => Promise<ReadonlyMap<string, unknown>>

export interface SubscriptionOptions {
  /** Raised together with every change of the definition. */
  readonly revision: number
  /** `document.updated`, `document.*`, `*`. */
  readonly types: readonly string[]
  readonly aggregates?: readonly string[]
  readonly sink: Sink | SinkFunction
  readonly order?: 'aggregate' | 'none'
  /** `latest`: of several events of an aggregate only the newest is sent. */
  readonly coalesce?: 'none' | 'latest'
  readonly retry?: Partial<RetryPolicy>
  readonly batch?: { readonly count?: number; readonly bytes?: number }
  readonly lanes?: 'all' | 1
  readonly priority?: number
  readonly rate?: { readonly perSecond: number }
  /** Most calls of this subscription at once in one worker. */
  readonly inFlightMax?: number
  /** Deadline of one call to the sink; must stay below the worker's leaseMs. */
  readonly callMs?: number
  readonly mode?: 'live' | 'dry-run' | 'paused'
  readonly from?: StartFrom
  readonly load?: Load
  /** `references`: only events without a payload are loaded, the others carry their own. */
  readonly loads?: 'all' | 'references'
  /** What followers of a dead event of their aggregate do. */
  readonly onDead?: 'release' | 'hold'
}

const retrySpec = {
  baseMs: integer({ min: 1, max: 86_400_000, default: 1_000 }),
  factor: decimal({ min: 1, max: 100, default: 2 }),
  capMs: integer({ min: 1, max: 86_400_000, default: 300_000 }),
  jitter: decimal({ min: 0, max: 1, default: 0.2 }),
  attemptsMax: integer({ min: 1, max: 1_000, default: 6 }),
}

const batchSpec = {
  count: integer({ min: 1, max: 5_000, default: 100 }),
  bytes: integer({ min: 1, max: 64 * 1024 * 1024, default: 4 * 1024 * 1024 }),
}

const subscriptionSpec = {
  revision: integer({ min: 1, max: 2_147_483_647 }),
  types: list(text(validatePattern), { min: 1 }),
  aggregates: optional(list(text(aggregateTypeProblem), { min: 1 })),
  sink: rule(readSink),
  order: oneOf(['aggregate', 'none'], 'aggregate'),
  coalesce: oneOf(['none', 'latest'], 'none'),
  retry: withDefault(group(retrySpec), {}),
  batch: withDefault(group(batchSpec), {}),
  lanes: oneOf(['all', 1], 'all'),
  priority: integer({ min: -100, max: 100, default: 0 }),
  rate: optional(group({ perSecond: decimal({ min: 0.001, max: 1_000_000 }) })),
  inFlightMax: optional(integer({ min: 1, max: 10_000 })),
  callMs: integer({ min: 1, max: 3_600_000, default: 30_000 }),
  mode: oneOf(['live', 'dry-run', 'paused'], 'live'),
  from: withDefault(rule(readFrom), 'now'),
  load: optional(callable<Load>()),
  loads: oneOf(['all', 'references'], 'all'),
  onDead: oneOf(['release', 'hold'], 'release'),
}

/** Complete, frozen; `ledger` is what the sink says of itself. */
export type ResolvedSubscription = Checked<typeof subscriptionSpec> & {
  readonly name: string
  readonly ledger: boolean
}

/** What is stored of a subscription made at run time: everything but functions, and the kind of its sink. */
export interface Definition extends Omit<SubscriptionOptions, 'revision' | 'sink' | 'load' | 'loads' | 'lanes'> {
  /** Registered with outbox.sinkKind() where workers run. */
  readonly kind: string
  /** What the kind makes its sink of: JSON of at most 16,384 bytes. */
  readonly settings?: Readonly<Record<string, unknown>>
  /** One lane when left out: thousands of subscriptions are cheap then, and each still has its order. */
  readonly lanes?: 'all' | 1
  /** Its sink keeps a row for each event (mail, SMS). The kind says it where it is registered. */
  readonly ledger?: boolean
}

export const settingsBytesMax = 16_384

const { revision: _revision, sink: _sink, load: _load, loads: _loads, ...policySpec } = subscriptionSpec

const definitionSpec = {
  ...policySpec,
  kind: text(kindNameProblem),
  settings: withDefault(rule(readSettings), {}),
  lanes: oneOf(['all', 1], 1),
  ledger: optional(flag(false)),
}

export type ResolvedDefinition = Checked<typeof definitionSpec> & { readonly name: string }

export function definitionOptions(name: string, given: Definition): ResolvedDefinition {
  const problems: Problem[] = []
  text(subscriptionNameProblem).read(name, 'name', problems)
  const checked = readGroup(given, '', definitionSpec, problems)
  problems.push(...policyProblems(checked, checked.ledger ?? false))
  refuse(`subscription ${JSON.stringify(String(name).slice(0, 63))}`, problems)
  return Object.freeze({ ...checked, name })
}

export function kindNameProblem(kind: unknown): string | undefined {
  if (typeof kind === 'string' && NAME.test(kind)) return undefined
  return 'must be the name of a kind: lower case letters, digits and _ . : -, at most 63 of them'
}

/** Never echoed: there may be secrets in it. */
function readSettings(value: unknown, field: string, problems: Problem[]): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    problems.push({ field, says: 'must be an object of JSON values' })
    return {}
  }
  try {
    const { text: json, bytes } = payloadToText(value, field)
    if (bytes <= settingsBytesMax) return JSON.parse(json)
    problems.push({ field, says: `must be at most ${settingsBytesMax} bytes of JSON (got ${bytes})` })
  } catch (error) {
    problems.push({ field: (error as HermodError).field ?? field, says: 'must hold only what JSON can carry' })
  }
  return {}
}

const NAME = /^[a-z][a-z0-9_.:-]{0,62}$/

export function subscriptionNameProblem(name: unknown): string | undefined {
  if (typeof name === 'string' && NAME.test(name)) return undefined
  return 'must be a name: lower case letters, digits and _ . : -, at most 63 of them'
}

export function subscriptionOptions(name: string, given: SubscriptionOptions): ResolvedSubscription {
  const problems: Problem[] = []
  text(subscriptionNameProblem).read(name, 'name', problems)
  const checked = readGroup(given, '', subscriptionSpec, problems)
  if (checked.loads === 'references' && checked.load === undefined) {
    problems.push({ field: 'loads', says: 'must be left out without load' })
  }
  const ledger = checked.sink?.capabilities?.ledger ?? false
  problems.push(...policyProblems(checked, ledger))
  refuse(`subscribe(${JSON.stringify(String(name).slice(0, 63))})`, problems)
  return Object.freeze({ ...checked, name, ledger })
}

/** What only shows when all of a policy is known. */
function policyProblems({ retry, coalesce }: Pick<Checked<typeof policySpec>, 'retry' | 'coalesce'>, ledger: boolean) {
  const problems: Problem[] = []
  if (retry?.capMs < retry?.baseMs) {
    problems.push({ field: 'retry.capMs', says: `must be at least retry.baseMs (${retry.baseMs})` })
  }
  if (ledger && coalesce === 'latest') {
    problems.push({ field: 'coalesce', says: 'must be none for a ledger sink: each event has its own effect' })
  }
  return problems
}

function readSink(value: unknown, field: string, problems: Problem[]): Sink {
  try {
    return asSink(value as Sink)
  } catch {
    problems.push({ field, says: 'must be a function or have a name and deliver()' })
    return value as Sink
  }
}

function readFrom(value: unknown, field: string, problems: Problem[]): ResolvedStartFrom {
  if (value === 'now' || value === 'beginning') return value
  const { position, time, ...rest } = (value ?? {}) as Record<string, unknown>
  const at = timeOf(time)
  if (Object.keys(rest).length === 0) {
    if (time === undefined && isPosition(position)) return Object.freeze({ position: BigInt(position) })
    if (position === undefined && at !== undefined) return Object.freeze({ time: new Date(at) })
  }
  problems.push({
    field,
    says: "must be 'now', 'beginning', { position } or { time } with its zone",
  })
  return 'now'
}

/** bigint's range in PostgreSQL; text, because drivers give 64-bit numbers as strings. */
function isPosition(value: unknown): value is bigint | number | string {
  if (typeof value === 'string') return /^\d{1,18}$/.test(value)
  if (typeof value === 'bigint') return value >= 0n && value < 2n ** 63n
  return Number.isSafeInteger(value) && (value as number) >= 0
}
