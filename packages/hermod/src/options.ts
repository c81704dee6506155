/**
 * The options of the outbox and of a worker, with their defaults and bounds; those of a subscription are in
 * subscription-options.ts. Checked once: type → defaults → validate → freeze, all problems at once.
 */
import {
  type Checked,
  callable,
  checkOptions,
  decimal,
  flag,
  got,
  group,
  having,
  integer,
  list,
  optional,
  type Problem,
  readGroup,
  refuse,
  rule,
  secret,
  text,
  withDefault,
} from './check-options.ts'
import type { EventDefinitions } from './event-definitions.ts'
import { didYouMean, nearest } from './nearest.ts'
import { type ResolvedSubscription, subscriptionNameProblem } from './subscription-options.ts'
import { type Listener, listenerNames } from './telemetry.ts'
import type { Archive } from './worker/upkeep/archive.ts'

export { secret } from './check-options.ts'
export {
  type Definition,
  type Load,
  type ResolvedDefinition,
  type ResolvedStartFrom,
  type ResolvedSubscription,
  type StartFrom,
  type SubscriptionOptions,
  subscriptionNameProblem,
  subscriptionOptions,
} from './subscription-options.ts'

/** What the engine needs of a `pg` pool. */
export interface PoolLike {
  connect(): Promise<unknown>
  query(...args: never[]): unknown
  readonly options?: { readonly max?: number | undefined }
}

export interface OutboxOptions {
  readonly pool: PoolLike
  /** Milliseconds since 1970; tests replace it. */
  readonly clock?: () => number
  readonly random?: () => number
  readonly listener?: Listener
  /** 1 to 256, fixed at installation; 16 when left out there. */
  readonly lanes?: number
  /** Made by defineEvents(). */
  readonly events?: EventDefinitions
  /**
   * Statements are prepared by name, once per connection, which is cheaper. Leave it off behind a pooler that
   * changes connections between transactions and does not know prepared statements.
   */
  readonly prepare?: boolean
}

const outboxSpec = {
  pool: having<PoolLike>(['connect', 'query'], 'must be a pg Pool: new Pool({ connectionString })'),
  clock: withDefault(callable<() => number>(), Date.now),
  random: withDefault(callable<() => number>(), Math.random),
  listener: withDefault(rule(readListener), {}),
  lanes: optional(integer({ min: 1, max: 256 })),
  prepare: flag(false),
  events: optional(having<EventDefinitions>(['resolve', 'read'], 'must be made by defineEvents()')),
}

export type ResolvedOutboxOptions = Checked<typeof outboxSpec>

export function outboxOptions(given: OutboxOptions): ResolvedOutboxOptions {
  return checkOptions('createOutbox', given, outboxSpec)
}

function readListener(value: unknown, field: string, problems: Problem[]): Listener {
  if (typeof value !== 'object' || value === null) {
    problems.push({ field, says: `must be an object of functions${got(value)}` })
    return {}
  }
  // The listener itself is kept, not a frozen copy: it may be an instance with state of its own.
  for (const name of listenerNames) {
    optional(callable()).read((value as Listener)[name], `${field}.${name}`, problems)
  }
  for (const key of Object.keys(value)) {
    const meant = nearest(key, listenerNames)
    if (meant === undefined || meant === key || Object.hasOwn(value, meant)) continue
    problems.push({
      field: `${field}.${key}`,
      says: `is never called; did you mean ${meant}?`,
      code: 'HMD_OPTION_UNKNOWN',
    })
  }
  return value
}

export interface WorkerOptions {
  /** Claim loops in this worker. */
  readonly concurrency?: number
  readonly leaseMs?: number
  /** Pause between polls while there is nothing to do. */
  readonly pollMs?: number
  /** Pause between polls while there is something to do. */
  readonly busyPollMs?: number
  /** How long stop() lets calls in flight finish. */
  readonly stopGraceMs?: number
  /** LISTEN for wake-ups; polling alone is always enough. */
  readonly listen?: boolean
  /** Serve only these; all when left out. */
  readonly subscriptions?: readonly string[]
  readonly name?: string
  /** Take part in partitions, retention and pruning. */
  readonly upkeep?: boolean
  readonly retention?: Partial<Retention>
}

export interface Retention {
  readonly eventDays: number
  readonly attemptDays: number
  /** Dead letters, unknown outcomes and receipts. */
  readonly deliveryDays: number
  /** Idempotency keys. */
  readonly keyDays: number
  /** Where events and undelivered rows go before they are removed: a folder, or an S3-compatible bucket. */
  readonly archive?: Archive | undefined
}

const workerSpec = {
  concurrency: integer({ min: 1, max: 256, default: 4 }),
  leaseMs: integer({ min: 1_000, max: 3_600_000, default: 45_000 }),
  pollMs: integer({ min: 1, max: 60_000, default: 1_000 }),
  busyPollMs: integer({ min: 1, max: 60_000, default: 20 }),
  stopGraceMs: integer({ min: 0, max: 3_600_000, default: 25_000 }),
  listen: flag(true),
  subscriptions: optional(list(text(subscriptionNameProblem), { min: 1 })),
  name: optional(text(workerNameProblem)),
  upkeep: flag(true),
  retention: withDefault(
    group({
      eventDays: decimal({ min: 0, max: 3_650, default: 7 }),
      attemptDays: decimal({ min: 0, max: 3_650, default: 7 }),
      deliveryDays: decimal({ min: 0, max: 3_650, default: 30 }),
      keyDays: decimal({ min: 0, max: 3_650, default: 7 }),
      archive: optional(rule(readArchive)),
    }),
    {},
  ),
}

const s3Spec = {
  endpoint: text(endpointProblem),
  bucket: text(notEmpty),
  region: text(notEmpty),
  accessKeyId: text(notEmpty),
  secretAccessKey: secret(),
  prefix: optional(text(() => undefined)),
}

function readArchive(value: unknown, field: string, problems: Problem[]): Archive {
  const spec = { folder: optional(text(notEmpty)), s3: optional(group(s3Spec)) }
  const archive = readGroup(value, field, spec, problems)
  if ((archive.folder === undefined) === (archive.s3 === undefined))
    problems.push({ field, says: 'must have either folder or s3' })
  return archive
}

function notEmpty(value: unknown): string | undefined {
  return String(value).trim() === '' ? 'must not be empty' : undefined
}

function endpointProblem(value: unknown): string | undefined {
  const fits = /^https?:$/.test(URL.canParse(String(value)) ? new URL(String(value)).protocol : '')
  return fits ? undefined : 'must be an address like https://s3.eu-central-1.amazonaws.com'
}

export type ResolvedWorkerOptions = Checked<typeof workerSpec>

export function workerOptions(given: WorkerOptions = {}): ResolvedWorkerOptions {
  return checkOptions('start', given, workerSpec)
}

/**
 * Checks that need all options: names are unique, every served subscription exists, each call ends before
 * its lease, and the pool has enough connections.
 */
export function checkTogether(
  worker: ResolvedWorkerOptions,
  subscriptions: readonly ResolvedSubscription[],
  poolMax: number | undefined,
  stored: readonly string[] = [],
): void {
  const names = subscriptions.map(({ name }) => name)
  refuse('start', [
    ...twice(names),
    ...unserved(worker.subscriptions ?? [], [...names, ...stored]),
    ...outlivingLease(worker, subscriptions),
    ...poolTooSmall(worker.concurrency + 2, poolMax),
  ])
}

function twice(names: readonly string[]): Problem[] {
  const repeated = new Set(names.filter((name, index) => names.indexOf(name) !== index))
  const says = 'is defined twice; one name is one subscription with one sink'
  return [...repeated].map((field) => ({ field, says, code: 'HMD_SUBSCRIPTION_CONFLICT' }))
}

function unserved(wanted: readonly string[], names: readonly string[]): Problem[] {
  const missing = wanted.filter((name) => !names.includes(name))
  return missing.map((name) => ({
    field: 'subscriptions',
    says: `names no subscription: ${name}${didYouMean(name, names)}`,
    code: 'HMD_SUBSCRIPTION_UNKNOWN',
  }))
}

export function outlivingLease(
  { leaseMs, subscriptions: only }: ResolvedWorkerOptions,
  subscriptions: readonly ResolvedSubscription[],
): Problem[] {
  const served = subscriptions.filter(({ name }) => only === undefined || only.includes(name))
  const slow = served.filter(({ callMs }) => callMs >= leaseMs)
  return slow.map(({ name, callMs }) => ({
    field: `${name}.callMs`,
    says: `must be below leaseMs (${leaseMs}), or a slow call outlives its lease (got ${callMs})`,
  }))
}

function poolTooSmall(needed: number, poolMax: number | undefined): Problem[] {
  if (poolMax === undefined || poolMax >= needed) return []
  const says = `must be at least concurrency + 2 = ${needed} (got ${poolMax})`
  return [{ field: 'pool.max', says, code: 'HMD_POOL_TOO_SMALL' }]
}

function workerNameProblem(value: unknown): string | undefined {
  const fits = /^[\x21-\x7e]{1,100}$/.test(String(value))
  return fits ? undefined : 'must be 1 to 100 printable characters without spaces'
}
