/**
 * The statement behind `find`. The state asked for decides what it reads first: open rows of
 * deliveries, scheduled events, or the log itself, lane by lane along its index.
 */
import { isoTime, type Param } from '../database.ts'

/** The nine words of `outbox.status`. */
export const states = [
  'pending',
  'scheduled',
  'processing',
  'delivered',
  'retrying',
  'blocked',
  'dead',
  'unknown',
  'discarded',
] as const

export type State = (typeof states)[number]

export interface FindFilter {
  readonly state?: State | undefined
  /** Exact, or everything below: `document.*`. */
  readonly type?: string | undefined
  readonly aggregate?: readonly [type: string, id: string | number | bigint] | undefined
  /** The header `actor`. */
  readonly actor?: string | undefined
  /** When they were numbered. */
  readonly since?: Date | string | undefined
  readonly until?: Date | string | undefined
  /** Anywhere in payload or aggregate id, without case. */
  readonly text?: string | undefined
  readonly subscription?: string | undefined
}

export interface Statement {
  readonly sql: string
  readonly params: Param[]
}

/** The filter in one form, whatever the order of its fields. */
export function filterText(filter: FindFilter): string {
  const entries = Object.entries(filter).filter(([, value]) => value !== undefined)
  return JSON.stringify(entries.sort(), (_, value) => (typeof value === 'bigint' ? String(value) : value))
}

const WITH_ROWS: readonly (State | undefined)[] = ['retrying', 'dead', 'unknown', 'discarded']

export function driverOf(filter: FindFilter, after: string | undefined, limit: number, payload: boolean): Statement {
  const params: Param[] = []
  const bind = (value: Param) => `$${params.push(value)}`
  const rows = bind(limit)
  const key = after === undefined ? undefined : bind(after)
  const from =
    filter.state === 'scheduled'
      ? fromScheduled(filter, bind, key, rows)
      : WITH_ROWS.includes(filter.state)
        ? fromRows(filter, bind, key, rows)
        : fromLog(filter, bind, key, rows)
  return { sql: pageOf(from, payload), params }
}

type Bind = (value: Param) => string

/** The columns of a page; states are asked for its rows only. */
function pageOf(from: string, payload: boolean): string {
  return `select p.key::text, p.pos::text, p.event_id::text, coalesce(e.type, p.copy ->> 'type') as type, p.aggregate_type, p.aggregate_id,
    e.headers ->> 'actor' as actor, ${isoTime('e.created_at')}, ${isoTime('e.not_before')}, e.bytes::text, ${isoTime('outbox.sequenced_at(p.pos)', 'sequenced_at')},
    ${payload ? `coalesce(e.payload, p.copy -> 'payload')::text` : 'null'} as payload, x.states::text
  from (${from}) p left join outbox.event e on e.id = p.event_id
  left join lateral (select json_object_agg(s.subscription, s.state) as states from outbox.status s where s.event_id = p.event_id) x on true
  order by p.key desc`
}

function fromScheduled(filter: FindFilter, bind: Bind, key: string | undefined, rows: string) {
  const where = [...onEvent(filter, bind), ...(key ? [`e.id < ${key}`] : []), ...hears(filter, bind)]
  return `select e.id as key, null::bigint as pos, e.id as event_id, e.aggregate_type, e.aggregate_id, null::json as copy
    from outbox.scheduled c join outbox.event e on e.id = c.event_id ${whereOf(where)} order by e.id desc limit ${rows}`
}

/** The subscription's newest filter matches an event not yet numbered. */
function hears({ subscription }: FindFilter, bind: Bind): string[] {
  if (subscription === undefined) return []
  return [
    `exists (select from outbox.states_of('filed', null, null, null, e.id, e.type, e.aggregate_type, e.aggregate_id, e.created_at) x
      where x.subscription = ${bind(subscription)})`,
  ]
}

/** A retry behind an earlier open row of its aggregate is blocked. */
const NOT_WAITING = `not exists (select from outbox.subscription s join outbox.delivery o on o.subscription = s.name
  where s.name = d.subscription and s.ordered and not s.coalesced and o.lane = d.lane and o.hash = d.hash and o.pos < d.pos and o.state <> 'delivered'
    and o.aggregate_type = d.aggregate_type and o.aggregate_id = d.aggregate_id
    and (o.state = 'retrying' or (o.state = 'dead' and s.dead_holds and not s.ledger)))`

function fromRows(filter: FindFilter, bind: Bind, key: string | undefined, rows: string): string {
  const where = [`d.state = ${bind(filter.state as string)}`, ...range(filter, bind, 'd.pos')]
  if (filter.state === 'retrying') where.push(NOT_WAITING)
  if (filter.subscription !== undefined) where.push(`d.subscription = ${bind(filter.subscription)}`)
  if (key !== undefined) where.push(`d.pos < ${key}`)
  if (filter.aggregate !== undefined) {
    const [type, id] = filter.aggregate
    where.push(`d.aggregate_type = ${bind(type)} and d.aggregate_id = ${bind(String(id))}`)
  }
  where.push(...onEvent({ ...filter, aggregate: undefined }, bind, true))
  return `select distinct on (d.pos) d.pos as key, d.pos, d.event_id, d.aggregate_type, d.aggregate_id, d.event as copy
    from outbox.delivery d left join outbox.event e on e.id = d.event_id ${whereOf(where)} order by d.pos desc limit ${rows}`
}

function fromLog(filter: FindFilter, bind: Bind, key: string | undefined, rows: string): string {
  const where = ['g.lane = i', ...range(filter, bind, 'g.pos'), ...onEvent(filter, bind)]
  if (key !== undefined) where.push(`g.pos < ${key}`)
  if (filter.type !== undefined) {
    const kinds = `outbox.kinds(array[${bind(filter.type)}::text], null)`
    where.push(`(${kinds} is null or g.kind = any (${kinds}))`)
  }
  let lanes = 'generate_series(0, t.lanes - 1) i'
  if (filter.aggregate !== undefined) {
    const [type, id] = filter.aggregate
    const hash = `outbox.hash(${bind(type)}, ${bind(String(id))})`
    where.push(`g.hash = ${hash}`)
    lanes = `(select outbox.lane_of(${hash}, t.lanes) as i) i`
  }
  where.push(...inState(filter, bind))
  return `select g.pos as key, g.pos, g.event_id, g.aggregate_type, g.aggregate_id, null::json as copy
    from outbox.setting t cross join lateral ${lanes}
    cross join lateral (select g.pos, g.event_id, e.aggregate_type, e.aggregate_id from outbox.log g join outbox.event e on e.id = g.event_id
      ${whereOf(where)} order by g.pos desc limit ${rows}) g
    order by g.pos desc limit ${rows}`
}

/** `states_of` decides the state; a cheap condition narrows the log before it. */
function inState({ state, subscription }: FindFilter, bind: Bind): string[] {
  if (state === undefined && subscription === undefined) return []
  const sub = subscription === undefined ? undefined : bind(subscription)
  const mine = (column: string) => (sub === undefined ? 'true' : `${column} = ${sub}`)
  const word = state === undefined ? 'true' : `x.state = ${bind(state)}`
  const where: string[] = []
  if (state === 'pending' || state === 'processing') {
    where.push(`g.pos > (select least(
      (select min(c.pos) from outbox.lane l cross join lateral outbox.cursor_of(l.subscription, l.lane) c where ${mine('l.subscription')}),
      (select min(d.pos) - 1 from outbox.delivery d where d.state in ('pending', 'sending') and ${mine('d.subscription')})))`)
  }
  if (state === 'blocked') {
    where.push(`g.hash = any (array(select d.hash from outbox.delivery d
      where d.state in ('retrying', 'dead') and ${mine('d.subscription')}))`)
  }
  where.push(`exists (select from outbox.states_of('numbered', g.pos, g.lane, g.hash, e.id, e.type, e.aggregate_type, e.aggregate_id, e.created_at) x
      where ${word} and ${mine('x.subscription')})`)
  return where
}

/** Conditions on the event itself; `copied`: it may live on in its delivery row. */
function onEvent(filter: FindFilter, bind: Bind, copied = false): string[] {
  const { type, aggregate, actor, text } = filter
  const field = (name: string) => (copied ? `coalesce(e.${name}, d.event ->> '${name}')` : `e.${name}`)
  const json = (name: string) => (copied ? `coalesce(e.${name}, d.event -> '${name}')` : `e.${name}`)
  const where: string[] = []
  if (type !== undefined) where.push(`outbox.matches(array[${bind(type)}::text], ${field('type')})`)
  if (aggregate !== undefined) {
    where.push(`e.aggregate_type = ${bind(aggregate[0])} and e.aggregate_id = ${bind(String(aggregate[1]))}`)
  }
  if (actor !== undefined) where.push(`${json('headers')} ->> 'actor' = ${bind(actor)}`)
  if (text !== undefined) {
    const sought = `lower(${bind(text)}::text)`
    where.push(
      `(strpos(lower(${json('payload')}::text), ${sought}) > 0 or strpos(lower(${copied ? 'd' : 'e'}.aggregate_id), ${sought}) > 0)`,
    )
  }
  return where
}

/** Times become positions through the steps, to the second. */
function range({ since, until }: FindFilter, bind: Bind, column: string): string[] {
  const where: string[] = []
  if (since !== undefined) {
    where.push(
      `${column} > coalesce((select s.pos from outbox.step s where s.at < ${bind(iso(since))}::timestamptz order by s.at desc limit 1), 0)`,
    )
  }
  if (until !== undefined) {
    where.push(
      `${column} <= coalesce((select s.pos from outbox.step s where s.at <= ${bind(iso(until))}::timestamptz order by s.at desc limit 1), 0)`,
    )
  }
  return where
}

function iso(value: Date | string): string {
  return new Date(value).toISOString()
}

function whereOf(conditions: readonly string[]): string {
  return conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
}
