/**
 * retry: dead, unknown and retrying deliveries become due now, with a new budget of attempts. What
 * would undo a newer delivered event of the same aggregate is refused, unless forced; then the
 * events after it are sent again too, so that the newest is always the last one sent.
 */
import { type Database, type PoolClient, type Row, select } from '../database.ts'
import { HermodError } from '../errors.ts'
import { checkDecision, type Decided, type Decision, decide, type Made, subscriptionNamed } from './audit.ts'
import { type DeliveryFilter, deliveryAt, type OpenState, refuseState, type Targets, targets } from './dead.ts'

const DECIDE = `select array_to_json(done)::text as done, array_to_json(superseded)::text as superseded
  from outbox.decide($1, $2, $3::smallint[], $4::bigint[], $5::text[], $6, $7)`

/** One transaction locks the lanes; with this many rows deliveries wait only for a moment. */
export const bulkMax = 10_000
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
  const lanes = [...new Set(found.rows.map(({ lane }) => lane))]
  const command = { action: act.action, subscription, lanes, by: act.by }
  return decide<Counts>(db, command, (tx) => carryOut(tx, subscription, act, found, single))
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

async function carryOut(
  tx: PoolClient,
  subscription: string,
  act: Act,
  { rows, matching }: Targets,
  single: boolean,
): Promise<Made> {
  const only = single ? await checkOne(tx, subscription, act) : undefined
  const [row] = await select(tx, DECIDE, [
    ...[subscription, act.action, rows.map(({ lane }) => lane)],
    ...[rows.map(({ position }) => position), act.allowed, act.force, act.by.reason ?? null],
  ])
  const { done, superseded } = positionsOf(row)
  if (single && superseded.length > 0) throw supersededError(subscription, superseded[0] as string)
  const counts = { done: done.length, superseded: superseded.length, matching, dryRun: false }
  return {
    count: done.length,
    after: { ...counts, positions: done },
    ...(only && { before: { state: only.state }, eventId: only.eventId, position: only.position }),
  }
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
