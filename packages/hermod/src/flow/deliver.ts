/**
 * deliver: one batch to a sink, outside any transaction, ending in one outcome per event. Halves
 * what the sink asks to split, and keeps back the followers of an event that failed.
 */
import type { ResolvedSubscription } from '../options.ts'
import {
  type Capabilities,
  type DeliveryContext,
  normaliseOutcomes,
  type Outcome,
  outcomeOfError,
  rejected,
  retry,
  superseded,
  unavailable,
} from '../sinks/sink.ts'
import type { Entry } from './claim.ts'
import { aggregateKey } from './settle.ts'

/** A sink that does not end this long after its signal was aborted is broken. */
const overdueMs = 1_000
/** Single events failing in a row while halving: the sink is broken, not one event. */
const brokenRow = 3

export interface CallOptions {
  /** Aborted when leases are lost or the worker stops; nothing is spent then. */
  readonly signal: AbortSignal
  readonly deadlineMs: number
  sending(entry: Entry, note: object | undefined): Promise<void>
  /** Told after each call to the sink. */
  called?(
    events: readonly Entry[],
    outcomes: readonly (Outcome | undefined)[],
    durationMs: number,
  ): void
}

export type Result = Map<Entry, Outcome | 'passed'>

/** Entries in order of position within each aggregate. Those without an outcome were not tried. */
export async function deliver(
  subscription: ResolvedSubscription,
  entries: readonly Entry[],
  options: CallOptions,
): Promise<Result> {
  const result: Result = new Map()
  const newest = subscription.coalesce === 'latest' ? coalesce(entries, result) : entries
  const valid = await validate(subscription, newest, result)
  const loaded = await load(subscription, valid, options)
  const failed = new Set<string>()
  for (const round of rounds(subscription, loaded)) {
    const going = passOver(round, failed, result)
    if (!(await sendAll(subscription, going, options, failed, result))) break
  }
  return result
}

/** Of several events of one aggregate only the newest is sent. */
function coalesce(entries: readonly Entry[], result: Result): Entry[] {
  const newest = new Map<string, Entry>()
  for (const entry of entries) {
    const key = aggregateKey(entry)
    const other = newest.get(key)
    const [keep, drop] =
      other && other.event.position > entry.event.position ? [other, entry] : [entry, other]
    if (drop !== undefined) result.set(drop, superseded())
    newest.delete(key)
    newest.set(key, keep)
  }
  return [...newest.values()]
}

/** Local checks: a problem is `rejected` without a call. */
async function validate(
  { sink }: ResolvedSubscription,
  entries: readonly Entry[],
  result: Result,
): Promise<readonly Entry[]> {
  if (sink.validate === undefined) return entries
  return entries.filter((entry) => {
    const problem = problemOf(() => sink.validate?.(entry.event))
    if (problem !== undefined)
      result.set(entry, rejected({ code: 'HMD_EVENT_INVALID', message: problem }))
    return problem === undefined
  })
}

function problemOf(check: () => string | undefined): string | undefined {
  try {
    return check()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** The subscription reads the current rows itself: payloads cannot be stale. */
async function load(
  subscription: ResolvedSubscription,
  entries: readonly Entry[],
  options: CallOptions,
): Promise<Entry[]> {
  const { load: loadRows } = subscription
  if (loadRows === undefined) return [...entries]
  for (const group of byAggregateType(entries).values()) {
    const events = group.map(({ event }) => event)
    const rows = await loadRows(events, { signal: options.signal })
    for (const entry of group) entry.event = withRow(entry.event, rows.get(entry.event.aggregateId))
  }
  return [...entries]
}

function byAggregateType(entries: readonly Entry[]): Map<string, Entry[]> {
  const groups = new Map<string, Entry[]>()
  for (const entry of entries) {
    const group = groups.get(entry.event.aggregateType)
    if (group === undefined) groups.set(entry.event.aggregateType, [entry])
    else group.push(entry)
  }
  return groups
}

/** A loaded row is current: no upcaster may touch it. */
function withRow(event: Entry['event'], row: unknown): Entry['event'] {
  const absent = row === undefined || row === null
  const payloadText = absent ? 'null' : JSON.stringify(row)
  return event.with({ payloadText, absent, definitions: undefined })
}

/**
 * Unless the sink itself keeps order within a call, a call holds one event of an aggregate: when it
 * fails, its followers have not been sent.
 */
function rounds({ sink, order }: ResolvedSubscription, entries: readonly Entry[]): Entry[][] {
  if (order === 'none' || sink.capabilities?.keepsOrder === true) return [[...entries]]
  const depth = new Map<string, number>()
  const list: Entry[][] = []
  for (const entry of entries) {
    const key = aggregateKey(entry)
    const at = depth.get(key) ?? 0
    depth.set(key, at + 1)
    const round = list[at]
    if (round === undefined) list[at] = [entry]
    else round.push(entry)
  }
  return list
}

function passOver(entries: readonly Entry[], failed: ReadonlySet<string>, result: Result): Entry[] {
  if (failed.size === 0) return [...entries]
  return entries.filter((entry) => {
    const waits = failed.has(aggregateKey(entry))
    if (waits) result.set(entry, 'passed')
    return !waits
  })
}

/** False: the destination is away, nothing more may be sent now. */
async function sendAll(
  subscription: ResolvedSubscription,
  entries: readonly Entry[],
  options: CallOptions,
  failed: Set<string>,
  result: Result,
): Promise<boolean> {
  for (const chunk of chunks(entries, subscription)) {
    const going = passOver(chunk, failed, result)
    const halving = { singles: 0, broken: undefined as Outcome | undefined }
    if (!(await send(subscription, going, options, failed, result, halving))) return false
  }
  return true
}

/** Within the sink's limits by count and by bytes. */
function* chunks(
  entries: readonly Entry[],
  { sink, batch }: ResolvedSubscription,
): Generator<Entry[]> {
  const limits: Partial<Capabilities> = sink.capabilities ?? {}
  const itemsMax = Math.min(limits.itemsMax ?? batch.count, Math.max(batch.count, 1))
  const bytesMax = limits.bytesMax ?? Number.POSITIVE_INFINITY
  let chunk: Entry[] = []
  let bytes = 0
  for (const entry of entries) {
    const size = bytesMax === Number.POSITIVE_INFINITY ? 0 : entry.event.bytes
    if (chunk.length > 0 && (chunk.length >= itemsMax || bytes + size > bytesMax)) {
      yield chunk
      chunk = []
      bytes = 0
    }
    chunk.push(entry)
    bytes += size
  }
  if (chunk.length > 0) yield chunk
}

interface Halving {
  singles: number
  broken: Outcome | undefined
}

async function send(
  subscription: ResolvedSubscription,
  entries: readonly Entry[],
  options: CallOptions,
  failed: Set<string>,
  result: Result,
  halving: Halving,
): Promise<boolean> {
  const going = passOver(entries, subscription.order === 'aggregate' ? failed : new Set(), result)
  if (going.length === 0) return true
  if (halving.broken !== undefined) {
    for (const entry of going) record(entry, halving.broken, failed, result)
    return true
  }
  const outcomes = await call(subscription, going, options)
  const again: Entry[] = []
  for (const [index, entry] of going.entries()) {
    const outcome = outcomes[index]
    if (outcome?.outcome === 'split' && going.length > 1) again.push(entry)
    else if (outcome !== undefined) record(entry, alone(outcome), failed, result)
  }
  noteSingle(going, outcomes[0], halving)
  if (again.length === 0) return !outcomes.some(isAway)
  const middle = Math.ceil(again.length / 2)
  const left = await send(subscription, again.slice(0, middle), options, failed, result, halving)
  return left && (await send(subscription, again.slice(middle), options, failed, result, halving))
}

/** A single event cannot be split further. */
function alone(outcome: Outcome): Outcome {
  return outcome.outcome === 'split' ? { ...outcome, outcome: 'rejected' } : outcome
}

function record(entry: Entry, outcome: Outcome, failed: Set<string>, result: Result): void {
  result.set(entry, outcome)
  if (outcome.outcome === 'retry' || isAway(outcome)) failed.add(aggregateKey(entry))
}

function isAway(outcome: Outcome | undefined): boolean {
  return (
    outcome === undefined ||
    outcome.outcome === 'unavailable' ||
    outcome.outcome === 'misconfigured'
  )
}

function noteSingle(
  entries: readonly Entry[],
  outcome: Outcome | undefined,
  halving: Halving,
): void {
  if (entries.length !== 1) return
  halving.singles = outcome?.outcome === 'retry' ? halving.singles + 1 : 0
  if (halving.singles >= brokenRow) halving.broken = outcome
}

/** One call under its deadline. Undefined outcomes: it was aborted, nothing is known or spent. */
async function call(
  subscription: ResolvedSubscription,
  entries: readonly Entry[],
  options: CallOptions,
): Promise<(Outcome | undefined)[]> {
  const started = performance.now()
  const outcomes = await attempt(subscription, entries, options)
  options.called?.(entries, outcomes, performance.now() - started)
  return outcomes
}

async function attempt(
  subscription: ResolvedSubscription,
  entries: readonly Entry[],
  options: CallOptions,
): Promise<(Outcome | undefined)[]> {
  if (options.signal.aborted) return entries.map(() => undefined)
  const { sink, ledger } = subscription
  const events = entries.map(({ event }) => event)
  const deadline = AbortSignal.timeout(options.deadlineMs)
  const signal = AbortSignal.any([options.signal, deadline])
  const begun = new Set<Entry>()
  const context = contextOf(subscription, entries, options, signal, begun)
  try {
    const given = await settled(Promise.resolve(sink.deliver(events, context)), signal)
    if (given !== OVERDUE) return [...normaliseOutcomes(given, events, { ledger })]
    return entries.map((entry) => overdue(options.signal, ledger, begun.has(entry)))
  } catch (error) {
    const outcome = deadline.aborted
      ? late(options.deadlineMs)
      : outcomeOfError(error, { items: events.length, ledger })
    if (ledger) return entries.map((entry) => (begun.has(entry) ? doubtful(outcome) : undefined))
    return entries.map(() => (options.signal.aborted ? undefined : outcome))
  }
}

function contextOf(
  subscription: ResolvedSubscription,
  entries: readonly Entry[],
  options: CallOptions,
  signal: AbortSignal,
  begun: Set<Entry>,
): DeliveryContext {
  const byEvent = new Map(subscription.ledger ? entries.map((entry) => [entry.event, entry]) : [])
  return {
    signal,
    subscription: subscription.name,
    deadlineMs: options.deadlineMs,
    sending: async (event, note) => {
      const entry = byEvent.get(event as Entry['event'])
      if (entry === undefined) return
      await options.sending(entry, note)
      begun.add(entry)
    },
  }
}

/** Thrown after `sending`: whether it arrived cannot be known, unless the error says so. */
function doubtful(outcome: Outcome): Outcome {
  const sure = outcome.outcome === 'unavailable' || outcome.outcome === 'misconfigured'
  return sure && outcome.code !== 'HMD_SINK_DEADLINE' ? outcome : { ...outcome, outcome: 'unknown' }
}

const OVERDUE = Symbol('overdue')

/** Waits for the sink, but not for one that ignores its signal. */
async function settled<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | typeof OVERDUE> {
  let timer: NodeJS.Timeout | undefined
  const abandoned = new Promise<typeof OVERDUE>((resolve) => {
    const wait = () => {
      timer = setTimeout(() => resolve(OVERDUE), overdueMs)
    }
    if (signal.aborted) wait()
    else signal.addEventListener('abort', wait, { once: true })
  })
  promise.catch(() => {})
  try {
    return await Promise.race([promise, abandoned])
  } finally {
    clearTimeout(timer)
  }
}

function overdue(stop: AbortSignal, ledger: boolean, begun: boolean): Outcome | undefined {
  const details = { code: 'HMD_SINK_BROKEN', message: 'the sink did not settle after its deadline' }
  if (ledger) return begun ? { outcome: 'unknown', ...details } : undefined
  return stop.aborted ? undefined : retry(details)
}

function late(deadlineMs: number): Outcome {
  return unavailable({ code: 'HMD_SINK_DEADLINE', message: `no answer within ${deadlineMs} ms` })
}
