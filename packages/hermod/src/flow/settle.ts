/**
 * settle: computes what a delivered batch means for cursors and rows, and writes it in one statement. A lane
 * missing from the answer was taken over; its result is dropped, and its new owner delivers again.
 */
import { type Database, select, sendText } from '../database.ts'
import type { ResolvedSubscription } from '../options.ts'
import { fingerprint } from '../sinks/fingerprint.ts'
import type { Outcome } from '../sinks/outcome.ts'
import type { Entry, Result } from './result.ts'

const SETTLE = `select lane::text from outbox.settle($1, $2, $3, $4::json) as lane`

/** Outcomes that leave the event in the backlog: no attempt is spent, no row is written. */
const WAITING = new Set(['unavailable', 'misconfigured', 'split'])

export interface LaneResult {
  readonly lane: number
  readonly fence: bigint
  readonly from: bigint
  readonly through: bigint
  readonly fresh: readonly Entry[]
  readonly due: readonly Entry[]
}

export interface Call {
  readonly startedAgoMs: number
  readonly durationMs: number
  readonly worker: string
  /** Nothing was sent: a dry run. */
  readonly rehearsed: boolean
}

/** An entry without an outcome was not attempted. */
export type Outcomes = Pick<Result, 'get'>

/** Names an event and its aggregate, as `outbox.settle` reads it. */
interface EventRow {
  readonly pos: string
  readonly event_id: string
  readonly aggregate_type: string
  readonly aggregate_id: string
}

/** An event that is blocked by an earlier event of its aggregate. */
interface BlockedRow extends EventRow {
  readonly attempts_max: number
}

/** An event whose delivery needs a row: it failed, or the subscription keeps a ledger. */
interface DeliveryRow extends BlockedRow {
  readonly state: 'retrying' | 'dead' | 'unknown' | 'pending' | 'delivered'
  readonly attempts: number
  readonly after_ms: number
  readonly outcome?: Outcome['outcome']
  readonly code?: string | null
  readonly error?: string
  readonly fingerprint?: string
  readonly receipt?: object | null
}

export interface Settlement {
  readonly lane: number
  readonly fence: bigint
  readonly from: bigint
  readonly to: bigint
  sent: number
  delivered: number
  superseded: number
  failed: number
  readonly rows: DeliveryRow[]
  readonly blocked: BlockedRow[]
  readonly done: EventRow[]
  /** Positions delivered beyond `to`; not sent again while this worker has the lane. */
  readonly beyond: bigint[]
}

/** As the columns hold it: a task may have been parked for longer than 24 days. */
function wholeMs(ms: number): number {
  return Math.min(2_147_483_647, Math.round(ms))
}

export type DelayOf = (attempt: number, afterMs: number | undefined) => number

/** The cursor moves up to just before the first event that has to wait. */
export function settlement(
  subscription: ResolvedSubscription,
  lane: LaneResult,
  outcomes: Outcomes,
  delayOf: DelayOf,
): Settlement {
  const stop = lane.fresh.find((entry) => waits(outcomes.get(entry)))
  const to = stop === undefined ? lane.through : stop.event.position - 1n
  const { lane: number, fence, from } = lane
  const result: Settlement = {
    lane: number,
    fence,
    from,
    to,
    sent: 0,
    delivered: 0,
    superseded: 0,
    failed: 0,
    rows: [],
    blocked: [],
    done: [],
    beyond: [],
  }
  const blocked = new Map<string, Entry>()
  for (const entry of lane.fresh) {
    const outcome = outcomes.get(entry)
    if (stop !== undefined && entry.event.position > to) addBeyond(result, entry, outcome)
    else if (outcome === 'blocked') keepBlocked(blocked, entry, subscription.coalesce === 'latest')
    else addFresh(result, subscription, entry, outcome as Outcome, delayOf)
  }
  for (const entry of blocked.values()) result.blocked.push(blockedRow(entry, subscription))
  for (const entry of lane.due) addDue(result, subscription, entry, outcomes.get(entry), delayOf)
  return result
}

function waits(outcome: Outcome | 'blocked' | undefined): boolean {
  return outcome === undefined || (outcome !== 'blocked' && WAITING.has(outcome.outcome))
}

function addBeyond(result: Settlement, entry: Entry, outcome: Outcome | 'blocked' | undefined): void {
  if (outcome === undefined || outcome === 'blocked') return
  if (outcome.outcome === 'delivered' || outcome.outcome === 'superseded') {
    result.beyond.push(entry.event.position)
    result.sent++
  }
}

/** Of the blocked events of an aggregate the newest counts when coalescing, else the oldest. */
function keepBlocked(blocked: Map<string, Entry>, entry: Entry, newest: boolean): void {
  const key = aggregateKey(entry)
  if (newest || !blocked.has(key)) blocked.set(key, entry)
}

function addFresh(
  result: Settlement,
  subscription: ResolvedSubscription,
  entry: Entry,
  outcome: Outcome,
  delayOf: DelayOf,
): void {
  result.sent++
  if (isSuccess(outcome)) {
    countSuccess(result, outcome)
    // Some of the events that a replay sends have rows.
    if (entry.mark === 'due' || (entry.mark === 'dead' && subscription.coalesce === 'latest'))
      result.done.push(rowKey(entry))
    return
  }
  result.failed++
  result.rows.push(failedRow(subscription, entry, outcome, delayOf))
}

function addDue(
  result: Settlement,
  subscription: ResolvedSubscription,
  entry: Entry,
  outcome: Outcome | 'blocked' | undefined,
  delayOf: DelayOf,
): void {
  if (outcome === 'blocked' || outcome === undefined) return
  if (WAITING.has(outcome.outcome)) {
    if (subscription.ledger) result.rows.push(ledgerRow(subscription, entry, outcome, 'pending', entry.attempts))
    return
  }
  result.sent++
  if (!isSuccess(outcome)) {
    result.failed++
    result.rows.push(failedRow(subscription, entry, outcome, delayOf))
    return
  }
  countSuccess(result, outcome)
  if (subscription.ledger) result.rows.push(ledgerRow(subscription, entry, outcome, 'delivered', entry.attempts + 1))
  else result.done.push(rowKey(entry))
}

function isSuccess(outcome: Outcome): boolean {
  return outcome.outcome === 'delivered' || outcome.outcome === 'superseded'
}

function countSuccess(result: Settlement, outcome: Outcome): void {
  if (outcome.outcome === 'delivered') result.delivered++
  else result.superseded++
}

function failedRow(subscription: ResolvedSubscription, entry: Entry, outcome: Outcome, delayOf: DelayOf): DeliveryRow {
  const attempts = entry.attempts + 1
  const exhausted = attempts >= subscription.retry.attemptsMax
  const state =
    outcome.outcome === 'unknown' ? 'unknown' : outcome.outcome === 'rejected' || exhausted ? 'dead' : 'retrying'
  return {
    ...rowKey(entry),
    state,
    attempts,
    attempts_max: subscription.retry.attemptsMax,
    after_ms: delayOf(attempts, outcome.afterMs),
    ...failure(subscription, outcome),
  }
}

function ledgerRow(
  subscription: ResolvedSubscription,
  entry: Entry,
  outcome: Outcome,
  state: 'pending' | 'delivered',
  attempts: number,
): DeliveryRow {
  const receipt = state === 'delivered' ? { receipt: outcome.receipt ?? null, message: outcome.message } : null
  const attempts_max = subscription.retry.attemptsMax
  return { ...rowKey(entry), state, attempts, attempts_max, after_ms: 0, receipt }
}

function failure(subscription: ResolvedSubscription, outcome: Outcome) {
  return {
    outcome: outcome.outcome,
    code: outcome.code ?? (outcome.status === undefined ? null : String(outcome.status)),
    error: outcome.message ?? outcome.outcome,
    fingerprint: fingerprint(subscription.sink.name, outcome),
  }
}

function rowKey(entry: Entry): EventRow {
  const { position, id, aggregateType, aggregateId } = entry.event
  const key = { pos: String(position), event_id: String(id) }
  return { ...key, aggregate_type: aggregateType, aggregate_id: aggregateId }
}

function blockedRow(entry: Entry, subscription: ResolvedSubscription): BlockedRow {
  return { ...rowKey(entry), attempts_max: subscription.retry.attemptsMax }
}

/** One string per aggregate; the type's alphabet has no slash. */
export function aggregateKey({ event }: Entry): string {
  return `${event.aggregateType}/${event.aggregateId}`
}

export interface SettledBatch {
  readonly lanes: readonly Settlement[]
  readonly call: Call
}

/** The lanes that were settled. A statement of its own: `db` must not be inside a transaction. */
export async function settle(
  db: Database,
  subscription: ResolvedSubscription,
  owner: string,
  batch: SettledBatch,
): Promise<Set<number>> {
  const { name, revision } = subscription
  const rows = await sendText((fit) => select(db, SETTLE, [name, revision, owner, batchText(batch, fit)]))
  return new Set(rows.map((row) => Number(row.lane)))
}

/** `fit`: for texts that did not come from the database. */
function batchText({ lanes, call }: SettledBatch, fit?: (text: string) => string): string {
  const failed = lanes.reduce((sum, lane) => sum + lane.failed, 0)
  const batch = {
    settlements: lanes.map((lane) => ({ ...lane, ...text(lane), beyond: undefined })),
    rehearsed: call.rehearsed,
    call: callRow(call, failed),
  }
  if (fit === undefined) return JSON.stringify(batch)
  const fitted = (key: string, value: unknown) =>
    typeof value === 'string' && key !== 'aggregate_id' ? fit(value) : value
  return JSON.stringify(batch, fitted)
}

/** A call, as `outbox.record_attempt` reads it. */
export function callRow(call: Call, failed: number): object {
  return {
    ago_ms: wholeMs(call.startedAgoMs),
    duration_ms: wholeMs(call.durationMs),
    worker: call.worker,
    outcome: failed > 0 ? 'failed' : 'delivered',
  }
}

/** JSON has no 64-bit numbers. */
export function text(lane: Settlement): object {
  const some = <T>(rows: readonly T[]) => (rows.length > 0 ? rows : undefined)
  return {
    fence: String(lane.fence),
    from: String(lane.from),
    to: String(lane.to),
    rows: some(lane.rows),
    blocked: some(lane.blocked),
    done: some(lane.done),
  }
}
