/**
 * show: everything that happened to one event: where it is for every subscription, what was tried,
 * what was decided, and the events before and after it in its aggregate.
 */
import { type Database, isoTime, type PoolClient, type Row, select } from '../database.ts'
import { HermodError } from '../errors.ts'
import { type AuditRow, auditRow, big, parsed, positionText, time } from './audit.ts'
import { bounded } from './find.ts'
import type { State } from './find-sql.ts'

const EVENT = `select e.id::text, w.stage, w.pos::text, w.lane::text, w.hash::text, ${isoTime('outbox.sequenced_at(w.pos)', 'sequenced_at')}, e.type, e.aggregate_type,
    e.aggregate_id, e.version::text, e.key, e.headers::text, ${isoTime('e.created_at')}, ${isoTime('e.not_before')}, e.bytes::text, case when $2 then e.payload::text end as payload
  from outbox.event e cross join lateral outbox.whereabouts(e.id, e.xid, e.not_before) w where e.id = $1`

/** Retention removed the event. An open row keeps a copy of it, a receipt keeps at least its name. */
const COPY = `select d.event_id::text as id, 'gone' as stage, d.pos::text, null as lane, d.hash::text, null as sequenced_at, d.event ->> 'type' as type,
    d.aggregate_type, d.aggregate_id, d.event ->> 'version' as version, d.event ->> 'key' as key, (d.event -> 'headers')::text as headers,
    d.event ->> 'created_at' as created_at, null as not_before, null as bytes, case when $2 then (d.event -> 'payload')::text end as payload
  from outbox.delivery d where d.event_id = $1 order by d.event is null limit 1`

const STATES = `select t.subscription, t.state, t.attempts::text, ${isoTime('t.next_attempt_at')}, ${isoTime('t.first_failed_at')}, ${isoTime('t.updated_at')}, t.code, t.error, t.blocked_by_pos::text,
    d.reason, d.receipt::text, case when $2 then d.correction::text end as correction, (d.correction is not null)::text as corrected
  from outbox.status t left join outbox.delivery d on d.event_id = t.event_id and d.subscription = t.subscription
 where t.event_id = $1 order by t.subscription`

/** Calls whose range covered the position, and the event's own failures. */
const ATTEMPTS = `select a.subscription, a.call::text, ${isoTime('a.started_at')}, a.duration_ms::text, a.worker, a.outcome, a.code, a.error, a.dry_run::text,
    (a.pos is not null)::text as own
  from outbox.subscription s cross join lateral (
    (select * from (select * from outbox.attempt a where a.subscription = s.name and a.lane = case when s.lanes = 1 then 0 else $2::smallint end
        and a.to_pos >= $1 order by a.to_pos, a.id limit 50) a where a.from_pos < $1 and a.pos is null)
    union all
    (select * from outbox.attempt a where a.subscription = s.name and a.pos = $1 order by a.id desc limit 100)) a
 order by a.id`

const AUDIT = `select id::text, ${isoTime('at')}, request_id, actor, action, subscription, event_id::text, pos::text, reason, count::text, null as before,
    case when pos is null then null else after end::text as after from outbox.audit
  where event_id = $1 or (pos is null and subscription is not null and after -> 'positions' @> jsonb_build_array($2::text)) order by audit.id limit 100`

/** Neighbours are searched only in the 20,000 log rows on each side. */
const NEIGHBOURS = `select g.pos::text, e.id::text, e.type from (
    (select * from (select * from outbox.log g where g.lane = $2 and g.pos < $1 order by g.pos desc limit 20000) g where g.hash = $3 order by g.pos desc limit 5)
    union all
    (select * from (select * from outbox.log g where g.lane = $2 and g.pos > $1 order by g.pos limit 20000) g where g.hash = $3 order by g.pos limit 5)) g
  join outbox.event e on e.id = g.event_id and e.aggregate_type = $4 and e.aggregate_id = $5 order by g.pos`

export interface EventState {
  readonly subscription: string
  readonly state: State
  readonly attempts: number
  readonly nextAttemptAt: Date | null
  readonly firstFailedAt: Date | null
  readonly updatedAt: Date | null
  readonly code: string | null
  readonly error: string | null
  /** It waits for the event at this position. */
  readonly blockedBy: bigint | null
  readonly reason: string | null
  readonly receipt: unknown
  readonly corrected: boolean
  /** Only when payloads are asked for. */
  readonly correction?: unknown
}

export interface EventAttempt {
  readonly subscription: string
  readonly call: bigint
  readonly startedAt: Date
  readonly durationMs: number
  readonly worker: string
  readonly outcome: string
  readonly code: string | null
  readonly error: string | null
  readonly dryRun: boolean
  /** False: a call that also covered other events. */
  readonly own: boolean
}

export interface EventStory {
  readonly id: bigint
  readonly position: bigint | null
  /** Numbered; scheduled; waiting to be numbered; gone = removed by retention. */
  readonly stage: 'numbered' | 'filed' | 'waiting' | 'gone'
  readonly sequencedAt: Date | null
  readonly type: string | null
  readonly aggregate: readonly [type: string, id: string]
  readonly version: number | null
  readonly key: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly createdAt: Date | null
  readonly notBefore: Date | null
  readonly bytes: number | null
  readonly payload?: unknown
  readonly states: readonly EventState[]
  readonly attempts: readonly EventAttempt[]
  readonly audit: readonly AuditRow[]
  /** Of the same aggregate, up to five before and five after. */
  readonly neighbours: readonly { position: bigint; id: bigint; type: string }[]
}

/** The id that `emit` returned, or the position. */
export type EventName = bigint | { readonly id: unknown } | { readonly position: unknown }

/** Undefined: there is no such event. */
export async function show(
  db: Database,
  which: EventName,
  { payload = false }: { readonly payload?: boolean } = {},
): Promise<EventStory | undefined> {
  return bounded(db, async (client) => {
    const id = await idOf(client, which)
    if (id === undefined) return undefined
    const row = (await select(client, EVENT, [id, payload]))[0] ?? (await select(client, COPY, [id, payload]))[0]
    return row === undefined ? undefined : story(client, row, payload)
  })
}

async function idOf(client: PoolClient, which: EventName): Promise<string | undefined> {
  if (typeof which !== 'object') return positionText(which, 'id')
  if ('id' in which) return positionText(which.id, 'id')
  if (!('position' in which)) {
    throw new HermodError('HMD_OPTION_INVALID', 'event: give an id or a position', { field: 'id' })
  }
  const text = `select coalesce((select g.event_id from outbox.log_at($1) g), (select d.event_id from outbox.lane l
    join outbox.delivery d on d.subscription = l.subscription and d.lane = l.lane and d.pos = $1 limit 1))::text as id`
  const [row] = await select(client, text, [positionText(which.position)])
  return row?.id ?? undefined
}

async function story(client: PoolClient, row: Row, payload: boolean): Promise<EventStory> {
  const id = row.id as string
  const states = await select(client, STATES, [id, payload])
  const pos = row.pos ?? null
  const attempts = pos === null ? [] : await select(client, ATTEMPTS, [pos, row.lane ?? null])
  const audit = await select(client, AUDIT, [id, pos])
  const { aggregate_type: type, aggregate_id: aggregateId } = row
  const near =
    row.lane == null
      ? []
      : await select(client, NEIGHBOURS, [pos, row.lane, row.hash ?? null, type ?? null, aggregateId ?? null])
  return {
    ...eventOf(row),
    ...(payload && { payload: parsed(row.payload) }),
    states: states.map((state) => stateOf(state, payload)),
    attempts: attempts.map(attemptOf),
    audit: audit.map(auditRow),
    neighbours: near.map((one) => ({
      position: BigInt(one.pos as string),
      id: BigInt(one.id as string),
      type: one.type as string,
    })),
  }
}

function eventOf(row: Row) {
  return {
    id: BigInt(row.id as string),
    position: big(row.pos),
    stage: row.stage as EventStory['stage'],
    sequencedAt: time(row.sequenced_at),
    type: row.type ?? null,
    aggregate: [row.aggregate_type as string, row.aggregate_id as string] as const,
    version: row.version == null ? null : Number(row.version),
    key: row.key ?? null,
    headers: (parsed(row.headers) ?? {}) as Record<string, string>,
    createdAt: time(row.created_at),
    notBefore: time(row.not_before),
    bytes: row.bytes == null ? null : Number(row.bytes),
  }
}

function stateOf(row: Row, payload: boolean): EventState {
  return {
    subscription: row.subscription as string,
    state: row.state as State,
    attempts: Number(row.attempts),
    nextAttemptAt: time(row.next_attempt_at),
    firstFailedAt: time(row.first_failed_at),
    updatedAt: time(row.updated_at),
    code: row.code ?? null,
    error: row.error ?? null,
    blockedBy: big(row.blocked_by_pos),
    reason: row.reason ?? null,
    receipt: parsed(row.receipt),
    corrected: row.corrected === 'true',
    ...(payload && { correction: parsed(row.correction) }),
  }
}

function attemptOf(row: Row): EventAttempt {
  return {
    subscription: row.subscription as string,
    call: BigInt(row.call as string),
    startedAt: new Date(row.started_at as string),
    durationMs: Number(row.duration_ms),
    worker: row.worker as string,
    outcome: row.outcome as string,
    code: row.code ?? null,
    error: row.error ?? null,
    dryRun: row.dry_run === 'true',
    own: row.own === 'true',
  }
}
