/**
 * deliver: sends one batch to a sink, outside any transaction, and ends in one outcome per event. It halves
 * what the sink asks to split, and holds back later events of an aggregate whose event failed.
 */
import type { ResolvedSubscription } from '../options.ts'
import { type Capabilities, type Outcome, rejected, type Sink, superseded, unavailable } from '../sinks/sink.ts'
import { type CallOptions, call, OVERDUE, unlessOverdue } from './call.ts'
import type { Entry } from './result.ts'
import { Result } from './result.ts'
import { aggregateKey } from './settle.ts'

/** Single events failing in a row while halving: the sink is broken, not one event. */
export const brokenRow = 3

/** Takes entries in order of position within each aggregate. Those without an outcome were not tried. */
export async function deliver(
  subscription: ResolvedSubscription,
  entries: readonly Entry[],
  options: CallOptions,
): Promise<Result> {
  const result = new Result()
  const newest = subscription.coalesce === 'latest' ? coalesce(entries, result) : entries
  const valid = validate(subscription, newest, result)
  const loaded = await load(subscription, valid, options, result)
  const failed = new Set<string>()
  for (const wave of waves(subscription, loaded)) {
    const going = withoutBlocked(wave, failed, result)
    if (!(await sendAll(subscription, going, options, failed, result))) break
  }
  return result
}

/** Events of an aggregate wait for an earlier one that failed. */
export function waitsInLine({ order, coalesce: coalesced }: ResolvedSubscription): boolean {
  return order === 'aggregate' || coalesced === 'latest'
}

/** Does this outcome block the later events of its aggregate? */
export function holdsBack(subscription: ResolvedSubscription, { outcome }: Outcome): boolean {
  if (!waitsInLine(subscription)) return false
  if (outcome === 'rejected') return subscription.onDead === 'hold'
  return outcome === 'retry' || outcome === 'unavailable' || outcome === 'misconfigured'
}

/** Of several events of one aggregate only the newest is sent. */
function coalesce(entries: readonly Entry[], result: Result): Entry[] {
  const newest = new Map<string, Entry>()
  for (const entry of entries) {
    const key = aggregateKey(entry)
    const other = newest.get(key)
    const [keep, drop] = other && other.event.position > entry.event.position ? [other, entry] : [entry, other]
    if (drop !== undefined) result.set(drop, superseded())
    newest.delete(key)
    newest.set(key, keep)
  }
  return [...newest.values()]
}

/** Local checks: a problem is `rejected` without a call. */
function validate(subscription: ResolvedSubscription, entries: readonly Entry[], result: Result): readonly Entry[] {
  const { sink } = subscription
  if (sink.validate === undefined) return entries
  const blocked = new Set<string>()
  return entries.filter((entry) => {
    const key = aggregateKey(entry)
    const problem = blocked.has(key) ? undefined : problemIn(sink, entry)
    if (problem === undefined && !blocked.has(key)) return true
    const outcome = rejected({ code: 'HMD_EVENT_INVALID', message: problem ?? '' })
    result.set(entry, blocked.has(key) ? 'blocked' : outcome)
    if (holdsBack(subscription, outcome)) blocked.add(key)
    return false
  })
}

/** The problem that the sink's own check reports; an error it throws counts as one. */
export function problemIn(sink: Sink, { event }: Entry): string | undefined {
  try {
    return sink.validate?.(event)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** The subscription reads the current rows itself, so payloads cannot be stale. */
async function load(
  subscription: ResolvedSubscription,
  entries: readonly Entry[],
  options: CallOptions,
  result: Result,
): Promise<readonly Entry[]> {
  if (subscription.load === undefined) return entries
  const wanted = subscription.loads === 'all' ? entries : entries.filter(({ event }) => event.payloadText === 'null')
  const missing = new Set<Entry>()
  for (const group of byAggregateType(wanted).values()) {
    const outcome = await loadGroup(subscription, group, options)
    if (outcome === undefined) continue
    for (const entry of group) missing.add(entry)
    if (!options.signal.aborted) for (const entry of group) result.set(entry, outcome)
  }
  return missing.size === 0 ? entries : entries.filter((entry) => !missing.has(entry))
}

/** If rows cannot be read, no event is to blame: no attempt is spent, the backlog waits. */
async function loadGroup(
  { load: loadRows, callMs }: ResolvedSubscription,
  group: readonly Entry[],
  options: CallOptions,
): Promise<Outcome | undefined> {
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(callMs)])
  try {
    const events = group.map(({ event }) => event)
    const rows = await unlessOverdue(Promise.resolve(loadRows?.(events, { signal })), signal)
    if (rows === OVERDUE || rows === undefined) throw new Error(`no rows within ${callMs} ms`)
    for (const entry of group) entry.event = withRow(entry.event, rows.get(entry.event.aggregateId))
    return undefined
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return unavailable({ code: 'LOAD_FAILED', message: `load: ${message}` })
  }
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

/** A loaded row is current: it needs no upcaster. */
function withRow(event: Entry['event'], row: unknown): Entry['event'] {
  const absent = row === undefined || row === null
  const payloadText = absent ? 'null' : JSON.stringify(row)
  return event.with({ payloadText, absent, definitions: undefined })
}

/**
 * Unless the sink itself keeps order within a call, a call contains one event of an aggregate: if it fails,
 * later events of the aggregate have not been sent.
 */
function waves({ sink, order }: ResolvedSubscription, entries: readonly Entry[]): Entry[][] {
  if (order === 'none' || sink.capabilities?.keepsOrder === true) return [[...entries]]
  const depth = new Map<string, number>()
  const list: Entry[][] = []
  for (const entry of entries) {
    const key = aggregateKey(entry)
    const at = depth.get(key) ?? 0
    depth.set(key, at + 1)
    const wave = list[at]
    if (wave === undefined) list[at] = [entry]
    else wave.push(entry)
  }
  return list
}

function withoutBlocked(entries: readonly Entry[], failed: ReadonlySet<string>, result: Result): Entry[] {
  if (failed.size === 0) return [...entries]
  return entries.filter((entry) => {
    const waits = failed.has(aggregateKey(entry))
    if (waits) result.set(entry, 'blocked')
    return !waits
  })
}

/** False: the destination is unavailable, nothing more may be sent now. */
async function sendAll(
  subscription: ResolvedSubscription,
  entries: readonly Entry[],
  options: CallOptions,
  failed: Set<string>,
  result: Result,
): Promise<boolean> {
  for (const chunk of chunks(entries, subscription)) {
    const going = withoutBlocked(chunk, failed, result)
    const halving = { singles: 0, broken: undefined as Outcome | undefined }
    if (!(await send(subscription, going, options, failed, result, halving))) return false
  }
  return !options.signal.aborted
}

/** Within the sink's limits by count and by bytes. */
function* chunks(entries: readonly Entry[], { sink, batch }: ResolvedSubscription): Generator<Entry[]> {
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
  const going = withoutBlocked(entries, failed, result).filter((entry) => options.mine(entry))
  if (going.length === 0) return true
  if (halving.broken !== undefined) {
    for (const entry of going) record(subscription, entry, halving.broken, failed, result)
    return true
  }
  const outcomes = await call(subscription, going, options)
  const again = recordAll(subscription, going, outcomes, failed, result)
  noteSingle(going, outcomes[0], halving)
  if (again.length === 0) return !outcomes.some(isAway)
  const middle = Math.ceil(again.length / 2)
  const left = await send(subscription, again.slice(0, middle), options, failed, result, halving)
  return left && (await send(subscription, again.slice(middle), options, failed, result, halving))
}

/** Notes what became of each entry of a call; those that have to be sent again in smaller calls come back. */
function recordAll(
  subscription: ResolvedSubscription,
  going: readonly Entry[],
  outcomes: readonly (Outcome | undefined)[],
  failed: Set<string>,
  result: Result,
): Entry[] {
  const again: Entry[] = []
  const refused = new Set<string>()
  for (const [index, entry] of going.entries()) {
    const outcome = outcomes[index]
    if (outcome === undefined) continue
    // The sink did not apply it because the one before it is dead: it is sent later, and no attempt is spent.
    if (outcome.outcome === 'retry' && refused.has(aggregateKey(entry))) failed.add(aggregateKey(entry))
    if (outcome.outcome === 'rejected' && waitsInLine(subscription)) refused.add(aggregateKey(entry))
    if (outcome.outcome === 'split' && going.length > 1) again.push(entry)
    else record(subscription, entry, alone(outcome), failed, result)
  }
  return again
}

/** A single event cannot be split further. */
function alone(outcome: Outcome): Outcome {
  return outcome.outcome === 'split' ? { ...outcome, outcome: 'rejected' } : outcome
}

/** After a failure in its aggregate an event is blocked, whatever the sink says about it. */
function record(
  subscription: ResolvedSubscription,
  entry: Entry,
  outcome: Outcome,
  failed: Set<string>,
  result: Result,
): void {
  const holds = holdsBack(subscription, outcome)
  if (failed.size === 0 && !holds) {
    result.set(entry, outcome)
    return
  }
  const key = aggregateKey(entry)
  result.set(entry, failed.has(key) ? 'blocked' : outcome)
  if (holds) failed.add(key)
}

function isAway(outcome: Outcome | undefined): boolean {
  return outcome === undefined || outcome.outcome === 'unavailable' || outcome.outcome === 'misconfigured'
}

function noteSingle(entries: readonly Entry[], outcome: Outcome | undefined, halving: Halving): void {
  if (entries.length !== 1) return
  halving.singles = outcome?.outcome === 'retry' ? halving.singles + 1 : 0
  if (halving.singles >= brokenRow) halving.broken = outcome
}
