/**
 * find: events by what is known of them, newest first, in pages that do not shift. Every search ends
 * within two seconds; one in payloads needs a time range of at most a day.
 */
import { type Database, type PoolClient, type Row, select } from '../database.ts'
import { HermodError } from '../errors.ts'
import { timeOf } from '../event-fields.ts'
import { big, parsed, time } from './audit.ts'
import { driverOf, type FindFilter, filterText, type State, states } from './find-sql.ts'
import { decodeCursor, encodeCursor } from './page.ts'

export type { FindFilter, State } from './find-sql.ts'
export { states } from './find-sql.ts'

export const findLimitMax = 200
const timeoutMs = 2_000
const textRangeMs = 24 * 60 * 60 * 1_000

export interface FindOptions {
  /** What the page before gave. */
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
  /** Payloads are private: only when asked for. */
  readonly payload?: boolean | undefined
}

export interface FoundEvent {
  readonly id: bigint
  /** Null while it is scheduled. */
  readonly position: bigint | null
  readonly type: string | null
  readonly aggregate: readonly [type: string, id: string]
  readonly actor: string | null
  readonly createdAt: Date | null
  readonly sequencedAt: Date | null
  readonly notBefore: Date | null
  readonly bytes: number | null
  /** One word for each subscription it concerns. */
  readonly states: Readonly<Record<string, State>>
  readonly payload?: unknown
}

export interface FoundPage {
  readonly events: readonly FoundEvent[]
  /** Null: this was the last page. */
  readonly cursor: string | null
}

/** Read only, limited in time, and without sequential scans. */
const BOUNDED = [
  'begin transaction read only',
  `set local statement_timeout = ${timeoutMs}`,
  'set local enable_seqscan = off',
  'set local enable_hashjoin = off',
  'set local enable_mergejoin = off',
  'set local jit = off',
  'set local max_parallel_workers_per_gather = 0',
].join('; ')

export async function find(db: Database, filter: FindFilter = {}, options: FindOptions = {}): Promise<FoundPage> {
  const { limit = 50, payload = false } = options
  refuseLimit(limit)
  const checked = checkFilter(filter)
  const bound = filterText(checked)
  const after = options.cursor === undefined ? undefined : decodeCursor(options.cursor, bound)
  const { sql, params } = driverOf(checked, after, limit + 1, payload)
  const rows = await bounded(db, (client) => select(client, sql, params))
  const page = rows.slice(0, limit).map((row) => foundEvent(row, payload))
  const last = rows.length > limit ? rows[limit - 1] : undefined
  return { events: page, cursor: last ? encodeCursor(last.key as string, bound) : null }
}

/** Two seconds, then HMD_FIND_TIMEOUT. */
export async function bounded<T>(db: Database, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await db.connect()
  try {
    await client.query(BOUNDED)
    return await work(client)
  } catch (error) {
    if ((error as { code?: unknown }).code !== '57014') throw error
    throw new HermodError('HMD_FIND_TIMEOUT', `the search took longer than ${timeoutMs} ms`, {
      cause: error,
    })
  } finally {
    const broken = await client.query('rollback').catch((error: Error) => error)
    client.release(broken instanceof Error ? broken : undefined)
  }
}

function foundEvent(row: Row, payload: boolean): FoundEvent {
  return {
    id: BigInt(row.event_id as string),
    position: big(row.pos),
    type: row.type ?? null,
    aggregate: [row.aggregate_type as string, row.aggregate_id as string],
    actor: row.actor ?? null,
    createdAt: time(row.created_at),
    sequencedAt: time(row.sequenced_at),
    notBefore: time(row.not_before),
    bytes: row.bytes == null ? null : Number(row.bytes),
    states: (parsed(row.states) ?? {}) as Record<string, State>,
    ...(payload && { payload: parsed(row.payload) }),
  }
}

function refuseLimit(limit: unknown): void {
  if (Number.isInteger(limit) && (limit as number) >= 1 && (limit as number) <= findLimitMax) return
  throw new HermodError('HMD_OPTION_INVALID', `limit must be 1 to ${findLimitMax}`, {
    field: 'limit',
  })
}

const FIELDS = ['state', 'type', 'aggregate', 'actor', 'since', 'until', 'text', 'subscription']

function checkFilter(filter: FindFilter): FindFilter {
  const unknown = Object.keys(filter).find((key) => !FIELDS.includes(key))
  if (unknown !== undefined) {
    const says = `find: ${unknown} is not a condition; known are ${FIELDS.join(', ')}`
    throw new HermodError('HMD_OPTION_UNKNOWN', says, { field: unknown })
  }
  if (filter.state !== undefined && !states.includes(filter.state)) {
    throw new HermodError('HMD_OPTION_INVALID', `state must be one of ${states.join(', ')}`, {
      field: 'state',
    })
  }
  const since = instant(filter.since, 'since')
  const until = instant(filter.until, 'until')
  if (filter.text !== undefined) refuseRange(since, until)
  return { ...filter, ...(since && { since }), ...(until && { until }) }
}

function instant(value: unknown, field: string): Date | undefined {
  if (value === undefined) return undefined
  const ms = timeOf(value)
  if (ms !== undefined) return new Date(ms)
  throw new HermodError('HMD_OPTION_INVALID', `${field} must be a Date or an ISO time with zone`, {
    field,
  })
}

function refuseRange(since: Date | undefined, until: Date | undefined): void {
  const rangeMs = since === undefined ? Number.POSITIVE_INFINITY : (until?.getTime() ?? Date.now()) - +since
  if (rangeMs <= textRangeMs) return
  throw new HermodError('HMD_FIND_RANGE', 'text needs since and until at most 24 hours apart', {
    field: since === undefined ? 'since' : 'until',
  })
}
