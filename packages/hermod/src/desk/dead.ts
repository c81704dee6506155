/**
 * dead: deliveries that wait for a person, as a list and grouped by what went wrong. Also finds the
 * rows that a command acts on, so that a count and the command after it mean the same rows.
 */
import { type Database, isoTime, type Queryable, type Row, select } from '../database.ts'
import { HermodError } from '../errors.ts'
import { big, positionText, subscriptionNamed, time } from './audit.ts'

/** States in which an operator may act on a delivery. */
export type OpenState = 'retrying' | 'dead' | 'unknown' | 'pending'

/** Which deliveries of a subscription; all conditions must hold. */
export interface DeliveryFilter {
  /** The short name a group has in `deadGroups()`. */
  readonly group?: string | undefined
  readonly state?: OpenState | readonly OpenState[] | undefined
  readonly type?: string | undefined
  readonly aggregate?: readonly [type: string, id: string] | undefined
  readonly code?: string | undefined
}

export interface DeadLetter {
  readonly subscription: string
  readonly position: bigint
  readonly eventId: bigint
  readonly state: string
  readonly type: string | null
  readonly aggregate: readonly [type: string, id: string]
  readonly attempts: number
  readonly code: string | null
  readonly error: string | null
  readonly group: string
  readonly firstFailedAt: Date | null
  readonly updatedAt: Date
  readonly corrected: boolean
}

export interface DeadGroup {
  readonly group: string
  readonly subscription: string
  readonly state: string
  readonly count: number
  readonly code: string | null
  readonly message: string | null
  readonly fingerprint: string | null
  readonly firstSeenAt: Date | null
  readonly lastSeenAt: Date
  /** The newest of them. */
  readonly samplePosition: bigint
}

const MATCHING = `from outbox.delivery d left join outbox.event e on e.id = d.event_id
  where d.subscription = $1 and d.state = any ($2::text[])
    and ($3::text is null or outbox.dead_group(d) = $3)
    and ($4::text is null or coalesce(e.type, d.event ->> 'type') = $4)
    and ($5::text is null or (d.aggregate_type = $5 and d.aggregate_id = $6::text))
    and ($7::text is null or d.code = $7)`

const TARGETS = `select d.lane::text, d.pos::text ${MATCHING} order by d.pos limit $8`
const COUNT = `select count(*)::text as count ${MATCHING}`

const ONE = `select d.lane::text, d.pos::text, d.state, d.event_id::text from outbox.lane l
  join outbox.delivery d on d.subscription = l.subscription and d.lane = l.lane and d.pos = $2
 where l.subscription = $1`

const LIST = `select d.subscription, d.pos::text, d.event_id::text, d.state, coalesce(e.type, d.event ->> 'type') as type,
    d.aggregate_type, d.aggregate_id, d.attempts::text, d.code, d.error, outbox.dead_group(d) as "group", ${isoTime('d.first_failed_at')}, ${isoTime('d.updated_at')},
    (d.correction is not null)::text as corrected
  from outbox.delivery d left join outbox.event e on e.id = d.event_id
 where d.state = any ($1::text[]) and ($2::text is null or d.subscription = $2) and ($3::text is null or outbox.dead_group(d) = $3)
   and ($4::bigint is null or d.pos < $4)
 order by d.pos desc, d.subscription limit $5`

const GROUPS = `select outbox.dead_group(d) as "group", d.subscription, d.state, count(*)::text as count, min(d.code) as code,
    (array_agg(d.error order by d.pos desc))[1] as message, min(d.fingerprint) as fingerprint, ${isoTime('min(d.first_failed_at)', 'first_at')},
    ${isoTime('max(d.updated_at)', 'last_at')}, max(d.pos)::text as sample
  from outbox.delivery d where d.state = any ($1::text[]) and ($2::text is null or d.subscription = $2)
 group by 1, 2, 3 order by count(*) desc, 1 limit $3`

export interface Target {
  readonly lane: number
  readonly position: string
}

export interface Targets {
  readonly rows: readonly Target[]
  /** All that match, also beyond the limit. */
  readonly matching: number
}

/** The rows a filter means, lowest positions first. */
export async function targets(
  db: Queryable,
  subscription: string,
  filter: DeliveryFilter,
  allowed: readonly OpenState[],
  limit: number,
): Promise<Targets> {
  const { group = null, type = null, aggregate, code = null } = filter
  const states = allowedStates(filter.state, allowed)
  const [aggregateType, aggregateId] = aggregate ?? [null, null]
  const where = [subscription, states, group, type, aggregateType, aggregateId, code]
  const [total] = await select(db, COUNT, where)
  const rows = limit > 0 ? await select(db, TARGETS, [...where, limit]) : []
  return { rows: rows.map(targetOf), matching: Number(total?.count) }
}

function allowedStates(given: DeliveryFilter['state'], allowed: readonly OpenState[]): string[] {
  if (given === undefined) return [...allowed]
  const states = [given].flat() as OpenState[]
  const wrong = states.find((state) => !allowed.includes(state))
  if (wrong === undefined) return states
  throw stateError(`no delivery that is ${wrong} can be`, wrong, allowed)
}

/** The row at a position, or HMD_DELIVERY_UNKNOWN. */
export async function deliveryAt(
  db: Queryable,
  subscription: string,
  position: unknown,
): Promise<Target & { readonly state: string; readonly eventId: string }> {
  const pos = positionText(position)
  const [row] = await select(db, ONE, [subscription, pos])
  if (row === undefined) {
    throw new HermodError('HMD_DELIVERY_UNKNOWN', `${subscription} has no delivery row at position ${pos}`, {
      details: { subscription, position: pos },
    })
  }
  return { ...targetOf(row), state: row.state as string, eventId: row.event_id as string }
}

export function refuseState(state: string, allowed: readonly string[], what: string): void {
  if (!allowed.includes(state)) throw stateError(`${what} is ${state} and cannot be`, state, allowed)
}

function stateError(says: string, state: string, allowed: readonly string[]): HermodError {
  const message = `${says} acted on so; allowed: ${allowed.join(', ')}`
  return new HermodError('HMD_DELIVERY_STATE', message, { details: { state, allowed } })
}

function targetOf(row: Row): Target {
  return { lane: Number(row.lane), position: row.pos as string }
}

export interface DeadOptions {
  readonly subscription?: string | undefined
  readonly group?: string | undefined
  readonly states?: readonly OpenState[] | undefined
  /** Only positions below this one: the last of the page before. */
  readonly before?: bigint | undefined
  readonly limit?: number | undefined
}

/** Dead letters and deliveries of unknown outcome, newest first. */
export async function deadLetters(db: Database, options: DeadOptions = {}): Promise<DeadLetter[]> {
  const { subscription, group = null, states = ['dead', 'unknown'], before, limit = 50 } = options
  if (subscription !== undefined) await subscriptionNamed(db, subscription)
  const rows = await select(db, LIST, [
    ...[states, subscription ?? null, group],
    ...[before === undefined ? null : String(before), Math.min(limit, 200)],
  ])
  return rows.map((row) => ({
    subscription: row.subscription as string,
    position: BigInt(row.pos as string),
    eventId: BigInt(row.event_id as string),
    state: row.state as string,
    type: row.type ?? null,
    aggregate: [row.aggregate_type as string, row.aggregate_id as string],
    attempts: Number(row.attempts),
    code: row.code ?? null,
    error: row.error ?? null,
    group: row.group as string,
    firstFailedAt: time(row.first_failed_at),
    updatedAt: new Date(row.updated_at as string),
    corrected: row.corrected === 'true',
  }))
}

/** The same, one line for each thing that went wrong, largest first. */
export async function deadGroups(
  db: Database,
  options: Omit<DeadOptions, 'before' | 'group'> = {},
): Promise<DeadGroup[]> {
  const { subscription, states = ['dead', 'unknown'], limit = 50 } = options
  if (subscription !== undefined) await subscriptionNamed(db, subscription)
  const rows = await select(db, GROUPS, [states, subscription ?? null, Math.min(limit, 200)])
  return rows.map((row) => ({
    group: row.group as string,
    subscription: row.subscription as string,
    state: row.state as string,
    count: Number(row.count),
    code: row.code ?? null,
    message: row.message ?? null,
    fingerprint: row.fingerprint ?? null,
    firstSeenAt: time(row.first_at),
    lastSeenAt: new Date(row.last_at as string),
    samplePosition: big(row.sample) as bigint,
  }))
}
