/**
 * retry: dead, unknown and retrying deliveries become due now, with a new budget of attempts. What
 * would undo a newer delivered event of the same aggregate is refused, unless forced; then the
 * events after it are sent again too, so that the newest is always the last one sent.
 */
import { type Database, type PoolClient, type Row, select } from '../database.ts'
import { HermodError } from '../errors.ts'
import {
  checkDecision,
  type Decided,
  type Decision,
  type Done,
  decide,
  decideInParts,
  type Made,
  type Part,
  subscriptionNamed,
} from './audit.ts'
import {
  type DeliveryFilter,
  deliveryAt,
  type OpenState,
  refuseState,
  type Target,
  type Targets,
  targets,
} from './dead.ts'

const DECIDE = `select array_to_json(done)::text as done, array_to_json(superseded)::text as superseded
  from outbox.decide($1, $2, $3::smallint[], $4::bigint[], $5::text[], $6, $7)`

export const bulkMax = 10_000
/** Rows in one transaction: while it holds the lanes, their owners cannot settle. */
const partRows = 500
const bulkDefault = 1_000

/** A position, or everything that matches. */
export type Which = bigint | number | string | DeliveryFilter

export interface BulkOptions {
  /** Only count. */
  readonly dryRun?: boolean | undefined
  /** Rows acted on in this call; 1,000 when left out, at most 10,000. */
  readonly limit?: number | undefined
}

export interface RetryOptions extends Decision, BulkOptions {
  /** Although a newer event of the aggregate was delivered. */
  readonly force?: boolean | undefined
}

export interface RetryResult extends Decided {
  readonly retried: number
  /** Left as they are: a newer event of their aggregate was delivered. */
  readonly superseded: number
  /** Rows that match; with `dryRun` nothing else is known. */
  readonly matching: number
  readonly dryRun: boolean
}

const RETRYABLE: readonly OpenState[] = ['dead', 'unknown', 'retrying']

export async function retry(
  db: Database,
  subscription: string,
  which: Which,
  options: RetryOptions,
): Promise<RetryResult> {
  const act = {
    action: 'retry' as const,
    allowed: RETRYABLE,
    by: checkDecision(options),
    which,
    options,
  }
  const counts = await actOn(db, subscription, { ...act, force: options.force ?? false })
  const { done, ...rest } = counts
  return { retried: done, ...rest }
}

export interface Act {
  readonly action: 'retry' | 'discard'
  readonly allowed: readonly OpenState[]
  readonly by: Decision
  readonly which: Which
  readonly options: BulkOptions
  readonly force: boolean
}

interface Counts {
  readonly done: number
  readonly superseded: number
  readonly matching: number
  readonly dryRun: boolean
}

/** What retry and discard have in common: find, lock, look again, act, record. */
export async function actOn(db: Database, subscription: string, act: Act): Promise<Counts & Decided> {
  await subscriptionNamed(db, subscription)
  const single = typeof act.which !== 'object'
  const found = single ? await one(db, subscription, act) : await many(db, subscription, act)
  if (act.options.dryRun) {
    const nothing = { done: 0, superseded: 0, matching: found.matching, dryRun: true }
    return { ...nothing, requestId: act.by.requestId ?? '', repeated: false }
  }
  if (single) {
    const command = { action: act.action, subscription, lanes: lanesOf(found.rows), by: act.by }
    return decide<Counts>(db, command, (tx) => carryOutOne(tx, subscription, act, found))
  }
  const about = { matching: found.matching, dryRun: false }
  const { action, by } = act
  return decideInParts<Counts>(db, { action, subscription, by }, partsOf(subscription, act, found.rows), about)
}

function lanesOf(rows: readonly Target[]): number[] {
  return [...new Set(rows.map(({ lane }) => lane))]
}

/**
 * Lane by lane: what was retried in one is settled while the next one is locked. A decision on nothing is recorded too.
 */
function partsOf(subscription: string, act: Act, found: readonly Target[]): Part[] {
  const rows = [...found].sort((a, b) => a.lane - b.lane)
  const parts: Part[] = []
  for (let from = 0; from === 0 || from < rows.length; from += partRows) {
    const mine = rows.slice(from, from + partRows)
    const work: Part['work'] = (tx, before) =>
      carryOut(
        tx,
        subscription,
        act,
        mine.filter(({ position }) => !before.has(position)),
      )
    parts.push({ lanes: lanesOf(mine), work })
  }
  return parts
}

/** A repeated request may find its row gone: the audit row answers, so nothing is refused here. */
async function one(db: Database, subscription: string, act: Act): Promise<Targets> {
  try {
    const { lane, position } = await deliveryAt(db, subscription, act.which)
    return { rows: [{ lane, position }], matching: 1 }
  } catch (error) {
    if (act.by.requestId === undefined || !(error instanceof HermodError)) throw error
    if (error.code !== 'HMD_DELIVERY_UNKNOWN') throw error
    return { rows: [], matching: 0 }
  }
}

async function many(db: Database, subscription: string, act: Act): Promise<Targets> {
  const { limit = bulkDefault, dryRun } = act.options
  if (!Number.isInteger(limit) || limit < 1 || limit > bulkMax) {
    throw new HermodError('HMD_OPTION_INVALID', `limit must be 1 to ${bulkMax}`, { field: 'limit' })
  }
  const filter = act.which as DeliveryFilter
  return targets(db, subscription, filter, act.allowed, dryRun ? 0 : limit)
}

async function carryOut(tx: PoolClient, subscription: string, act: Act, rows: readonly Target[]): Promise<Done> {
  const lanes = rows.map(({ lane }) => lane)
  const positions = rows.map(({ position }) => position)
  const what = [subscription, act.action, lanes, positions, act.allowed, act.force, act.by.reason ?? null]
  const [row] = await select(tx, DECIDE, what)
  const { done, superseded } = positionsOf(row)
  return { positions: done, superseded: superseded.length }
}

async function carryOutOne(tx: PoolClient, subscription: string, act: Act, { rows, matching }: Targets): Promise<Made> {
  const { state, eventId, position } = await checkOne(tx, subscription, act)
  const { positions, superseded } = await carryOut(tx, subscription, act, rows)
  if (superseded > 0) throw supersededError(subscription, position)
  const counts = { done: positions.length, superseded, matching, dryRun: false }
  return { count: positions.length, after: { ...counts, positions }, before: { state }, eventId, position }
}

/** Under the lock: what the row is now. */
async function checkOne(tx: PoolClient, subscription: string, act: Act) {
  const found = await deliveryAt(tx, subscription, act.which)
  refuseState(found.state, act.allowed, `position ${found.position} of ${subscription}`)
  return found
}

/** As text: JSON has no 64-bit numbers. */
function positionsOf(row: Row | undefined): { done: string[]; superseded: string[] } {
  const texts = (value: string | null | undefined) => value?.match(/\d+/g) ?? []
  return { done: texts(row?.done), superseded: texts(row?.superseded) }
}

function supersededError(subscription: string, position: string): HermodError {
  return new HermodError(
    'HMD_DELIVERY_SUPERSEDED',
    `a newer event of the aggregate at position ${position} was already delivered by ${subscription}`,
    { details: { subscription, position } },
  )
}
