/**
 * stats: how every subscription is doing, at one moment. Counts go along indexes and are estimated
 * beyond 100,000 rows. A count that takes too long is null and says why; it is never zero.
 */
import { type Database, isoTime, type PoolClient, type Row, select } from '../database.ts'
import { big, time } from './audit.ts'
import { type Health, healthOf } from './health.ts'

export interface Breaker {
  readonly state: 'closed' | 'open' | 'probing'
  readonly cause: 'unavailable' | 'misconfigured' | null
  readonly since: Date | null
  readonly says: string | null
  readonly failures: number
  readonly probeAt: Date | null
}

/** Counts are of events in that state; null = not known, see `reasons`. */
export interface SubscriptionStats {
  readonly name: string
  readonly sink: string | null
  /** The kind of its sink, if it was made at run time; null: declared in code. */
  readonly kind: string | null
  readonly mode: 'live' | 'dry-run' | 'paused'
  readonly health: Health
  readonly breaker: Breaker
  /** The highest position there is. */
  readonly head: bigint
  /** The lowest cursor of its lanes; a quiet lane may stay behind. */
  readonly cursor: bigint | null
  readonly pending: number | null
  /** Beyond 100,000 rows the rest is estimated. */
  readonly pendingEstimated: boolean
  /** Waiting since it was numbered, to the second. */
  readonly oldestPendingAgeMs: number | null
  readonly scheduled: number | null
  readonly processing: number | null
  readonly delivered: number | null
  readonly retrying: number | null
  readonly blocked: number | null
  readonly blockedEstimated: boolean
  readonly dead: number | null
  readonly unknown: number | null
  readonly discarded: number | null
  /** Delivered per second over the last minute. */
  readonly rate: number | null
  readonly workers: number
  /** Why a count is null, by the part that could not be read. */
  readonly reasons: Readonly<Record<string, string>>
}

export interface Stats {
  readonly at: Date
  readonly head: bigint
  /** Committed, not numbered yet. */
  readonly unnumbered: number | null
  readonly workers: number
  readonly subscriptions: readonly SubscriptionStats[]
}

export interface StatsOptions {
  /** For each part of the question. */
  readonly timeoutMs?: number
  /** An older pending event makes a subscription `behind`. */
  readonly behindMs?: number
}

const scanMax = 100_000

const BASE = `select s.name, coalesce(s.definition ->> 'sink', s.kind) as sink, s.kind, s.mode, s.mode_says, s.mode_by, ${isoTime('s.mode_since')}, s.ledger::text, s.held_cause, ${isoTime('s.held_since')},
    s.held_says, s.held_count::text, ${isoTime('s.probe_at')}, (s.probe_owner is not null)::text as probing, ${isoTime('s.served_at')},
    (select count(*) from outbox.worker w where s.name = any (w.subscriptions) and w.heartbeat_at > outbox.clock() - interval '5 seconds')::text as workers,
    (s.kind is not null and not exists (select from outbox.worker w where s.kind = any (w.kinds) and w.heartbeat_at > outbox.clock() - interval '5 seconds'))::text as kind_missing
  from outbox.subscription s order by s.name`
const NOW = `select ${isoTime('outbox.clock()', 'at')}, coalesce((select pos from outbox.step order by id desc limit 1), 0)::text as head,
  (select count(*) from outbox.worker w where w.heartbeat_at > outbox.clock() - interval '5 seconds')::text as workers`

/** Each part answers for all subscriptions at once: `name`, then its numbers. */
const PARTS = {
  lag: `select s.name, l.cursor_pos::text, l.delivered::text, l.past::text, l.processing::text, l.estimated::text,
      (extract(epoch from outbox.clock() - outbox.sequenced_at(l.oldest_pos)) * 1000)::bigint::text as age_ms
    from outbox.subscription s cross join lateral outbox.lag_of(s.name, ${scanMax}) l`,
  rows: `select d.subscription as name, count(*) filter (where d.state = 'pending')::text as pending,
      count(*) filter (where d.state = 'sending')::text as sending,
      count(*) filter (where d.state = 'retrying')::text as retrying, count(*) filter (where d.state = 'dead')::text as dead,
      count(*) filter (where d.state = 'unknown')::text as unknown, count(*) filter (where d.state = 'discarded')::text as discarded
    from outbox.subscription s join outbox.delivery d on d.subscription = s.name
     and d.state = any ('{pending,sending,retrying,dead,unknown,discarded}') group by 1`,
  blocked: `select s.name, b.blocked::text, b.waiting::text, b.waiting_pending::text, b.estimated::text from outbox.subscription s cross join lateral outbox.blocked_of(s.name, ${scanMax}) b`,
  scheduled: `select s.name, count(e.id)::text as scheduled from outbox.subscription s
     cross join lateral (select f.types, f.aggregates from outbox.filter f where f.subscription = s.name order by f.from_pos desc limit 1) f
     join (select c.event_id from outbox.scheduled c limit ${scanMax}) c on true join outbox.event e on e.id = c.event_id
     where outbox.matches(f.types, e.type) and (f.aggregates is null or e.aggregate_type = any (f.aggregates)) group by 1`,
  unnumbered: `select s.name, sum(u.count) filter (where outbox.matches(f.types, u.type) and (f.aggregates is null or u.aggregate_type = any (f.aggregates)))::text
      as unnumbered, sum(u.count)::text as total from (select * from outbox.unnumbered(${scanMax})) u cross join outbox.subscription s
     cross join lateral (select f.types, f.aggregates from outbox.filter f where f.subscription = s.name order by f.from_pos desc limit 1) f group by 1`,
  rate: `select subscription as name, delivered::text from outbox.rates(outbox.clock() - interval '1 minute')`,
} as const

type PartName = keyof typeof PARTS
type Part = { readonly rows: Map<string, Row>; readonly reason?: string }

export async function stats(db: Database, options: StatsOptions = {}): Promise<Stats> {
  const { timeoutMs = 1_000, behindMs = 60_000 } = options
  const client = await db.connect()
  try {
    // One snapshot for all parts: the numbers fit each other.
    await client.query('begin isolation level repeatable read read only')
    await client.query(`set local statement_timeout = ${Math.ceil(timeoutMs)}`)
    const [now] = await select(client, NOW)
    const base = await select(client, BASE)
    const parts = {} as Record<PartName, Part>
    for (const name of Object.keys(PARTS) as PartName[]) {
      parts[name] = await readPart(client, name, timeoutMs)
    }
    return assemble(now ?? {}, base, parts, behindMs)
  } finally {
    const broken = await client.query('rollback').catch((error: Error) => error)
    client.release(broken instanceof Error ? broken : undefined)
  }
}

/** A part that takes too long does not affect the others. */
async function readPart(client: PoolClient, name: PartName, timeoutMs: number): Promise<Part> {
  await client.query('savepoint part')
  try {
    const rows = await select(client, PARTS[name])
    return { rows: new Map(rows.map((row) => [row.name as string, row])) }
  } catch (error) {
    if ((error as { code?: unknown }).code !== '57014') throw error
    await client.query('rollback to savepoint part')
    return { rows: new Map(), reason: `not counted within ${timeoutMs} ms` }
  }
}

function assemble(now: Row, base: readonly Row[], parts: Record<PartName, Part>, behindMs: number): Stats {
  const at = new Date(now.at as string)
  const [first] = parts.unnumbered.rows.values()
  const head = BigInt(now.head ?? 0)
  return {
    at,
    head,
    unnumbered: parts.unnumbered.reason === undefined ? Number(first?.total ?? 0) : null,
    workers: Number(now.workers),
    subscriptions: base.map((row) => ({ ...subscriptionStats(row, parts, at, behindMs), head })),
  }
}

function subscriptionStats(
  row: Row,
  parts: Record<PartName, Part>,
  at: Date,
  behindMs: number,
): Omit<SubscriptionStats, 'head'> {
  const name = row.name as string
  const count = (part: PartName, field: string): number | null =>
    parts[part].reason === undefined ? Number(parts[part].rows.get(name)?.[field] ?? 0) : null
  const lag = parts.lag.rows.get(name)
  const oldestPendingAgeMs = lag?.age_ms == null ? null : Math.max(0, Number(lag.age_ms))
  const processing = count('lag', 'processing')
  const waiting = count('blocked', 'waiting')
  const waitingPending = count('blocked', 'waiting_pending')
  const workers = Number(row.workers)
  const pending = sum(
    [count('lag', 'past'), negative(processing)],
    [count('unnumbered', 'unnumbered'), count('rows', 'pending')],
    // Rows that wait for an earlier one of their aggregate are blocked, not pending.
    [negative(waitingPending)],
  )
  return {
    name,
    sink: row.sink ?? null,
    kind: row.kind ?? null,
    mode: row.mode as SubscriptionStats['mode'],
    workers,
    health: healthOf({ row, at, oldestPendingAgeMs, behindMs, workers, pending }),
    breaker: breakerOf(row),
    cursor: big(lag?.cursor_pos),
    pending,
    oldestPendingAgeMs,
    pendingEstimated: lag?.estimated === 'true',
    scheduled: count('scheduled', 'scheduled'),
    processing: sum([processing, count('rows', 'sending')]),
    delivered: count('lag', 'delivered'),
    retrying: sum([count('rows', 'retrying'), negative(waiting)]),
    blocked: sum([count('blocked', 'blocked'), waiting, waitingPending]),
    blockedEstimated: parts.blocked.rows.get(name)?.estimated === 'true',
    dead: count('rows', 'dead'),
    unknown: count('rows', 'unknown'),
    discarded: count('rows', 'discarded'),
    rate: ratePerSecond(count('rate', 'delivered')),
    reasons: reasonsOf(parts),
  }
}

/** If a part is unknown, the sum is unknown. */
function sum(...groups: (number | null)[][]): number | null {
  const values = groups.flat()
  if (values.includes(null)) return null
  return Math.max(
    0,
    (values as number[]).reduce((total, value) => total + value, 0),
  )
}

function negative(value: number | null): number | null {
  return value === null ? null : -value
}

function ratePerSecond(delivered: number | null): number | null {
  return delivered === null ? null : Math.round((delivered / 60) * 100) / 100
}

function reasonsOf(parts: Record<PartName, Part>): Record<string, string> {
  const found = Object.entries(parts).filter(([, part]) => part.reason !== undefined)
  return Object.fromEntries(found.map(([name, part]) => [name, part.reason as string]))
}

function breakerOf(row: Row): Breaker {
  return {
    state: row.held_cause === null ? 'closed' : row.probing === 'true' ? 'probing' : 'open',
    cause: (row.held_cause ?? null) as Breaker['cause'],
    since: time(row.held_since),
    says: row.held_says ?? null,
    failures: Number(row.held_count),
    probeAt: time(row.probe_at),
  }
}
