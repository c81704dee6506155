/**
 * audit: every decision of an operator is one transaction that locks its lanes first, looks again
 * under the lock, and leaves exactly one audit row. The same request id does nothing twice.
 */
import { randomUUID } from 'node:crypto'
import { type Database, type PoolClient, type Row, select, transaction } from '../database.ts'
import { HermodError } from '../errors.ts'
import { didYouMean } from '../nearest.ts'

/** Lanes and their order are the same for every command: two of them cannot deadlock. */
const LOCK = `select lane::text from outbox.lane where subscription = $1 and lane = any ($2::smallint[]) order by lane for update`
const RECALL = `select action, subscription, count::text, after::text from outbox.audit where request_id = $1`
const RECORD = `insert into outbox.audit (request_id, actor, action, subscription, event_id, pos, reason, count, before, after)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10::jsonb)`
const TRAIL = `select id::text, at, request_id, actor, action, subscription, event_id::text, pos::text, reason, count::text,
    before::text, after::text from outbox.audit
  where ($1::text is null or subscription = $1) and ($2::bigint is null or id < $2) order by id desc limit $3`

/** Who decides, why, and under which request id (made when left out). */
export interface Decision {
  readonly actor: string
  readonly reason?: string | undefined
  readonly requestId?: string | undefined
}

export interface Decided {
  readonly requestId: string
  /** This request id was carried out before; nothing was done now. */
  readonly repeated: boolean
}

export interface AuditRow {
  readonly id: bigint
  readonly at: Date
  readonly requestId: string
  readonly actor: string
  readonly action: string
  readonly subscription: string | null
  readonly eventId: bigint | null
  readonly position: bigint | null
  readonly reason: string | null
  readonly count: number | null
  readonly before: unknown
  readonly after: unknown
}

/** What a command has done. A repeated request gets `after` again. */
export interface Made {
  readonly count: number
  readonly after: Readonly<Record<string, unknown>>
  readonly before?: unknown
  readonly eventId?: string | undefined
  readonly position?: string | undefined
}

export interface Command {
  readonly action: string
  readonly subscription: string
  readonly lanes: readonly number[]
  readonly by: Decision
}

export async function decide<R extends object>(
  db: Database,
  { action, subscription, lanes, by }: Command,
  work: (tx: PoolClient) => Promise<Made>,
): Promise<R & Decided> {
  const requestId = by.requestId ?? randomUUID()
  return transaction(db, async (tx) => {
    await select(tx, 'set transaction isolation level read committed')
    // Lock first, then look, in separate statements.
    await select(tx, LOCK, [subscription, lanes])
    const [known] = await select(tx, RECALL, [requestId])
    if (known !== undefined) return recall<R>(known, action, subscription, requestId)
    const made = await work(tx)
    await select(tx, RECORD, [
      ...[requestId, by.actor, action, subscription, made.eventId ?? null, made.position ?? null],
      ...[by.reason ?? null, made.count, json(made.before), json(made.after)],
    ])
    return { ...(made.after as R), requestId, repeated: false }
  })
}

function recall<R>(known: Row, action: string, subscription: string, requestId: string) {
  if (known.action !== action || known.subscription !== subscription) {
    throw new HermodError(
      'HMD_IDEMPOTENCY_CONFLICT',
      `request id ${requestId} was used for ${known.action} of ${known.subscription}`,
      { fix: 'Use a new request id for a new decision.' },
    )
  }
  return { ...(JSON.parse(known.after ?? '{}') as R), requestId, repeated: true }
}

/** Refuses a decision without an actor, or without a reason where one is needed. */
export function checkDecision(by: Decision, reasonNeeded = false): Decision {
  refuseBlank('actor', by?.actor, 200, true)
  refuseBlank('reason', by.reason, 2_000, reasonNeeded)
  refuseBlank('requestId', by.requestId, 200, false)
  return by
}

function refuseBlank(field: string, value: unknown, charsMax: number, needed: boolean): void {
  if (value === undefined && !needed) return
  if (typeof value === 'string' && value.trim() !== '' && value.length <= charsMax) return
  throw new HermodError('HMD_OPTION_INVALID', `${field} must be 1 to ${charsMax} characters`, {
    field,
  })
}

/** The policy flags commands need, or HMD_SUBSCRIPTION_UNKNOWN with the nearest name. */
export async function subscriptionNamed(db: Database | PoolClient, name: string): Promise<Row> {
  const rows = await select(
    db,
    `select name, mode, lanes::text, ledger::text, ordered::text, held_cause,
            exists (select from outbox.shadow d where d.subscription = name)::text as rehearsed from outbox.subscription`,
  )
  const found = rows.find((row) => row.name === name)
  if (found !== undefined) return found
  const meant = didYouMean(
    String(name),
    rows.map((row) => row.name as string),
  )
  throw new HermodError('HMD_SUBSCRIPTION_UNKNOWN', `there is no subscription ${name}${meant}`)
}

export interface AuditOptions {
  readonly subscription?: string | undefined
  /** Only rows with a lower id: the last of the page before. */
  readonly before?: bigint | undefined
  readonly limit?: number | undefined
}

/** Decisions, newest first. */
export async function auditTrail(db: Database, options: AuditOptions = {}): Promise<AuditRow[]> {
  const { subscription = null, before, limit = 50 } = options
  const rows = await select(db, TRAIL, [
    subscription,
    before === undefined ? null : String(before),
    Math.min(limit, 200),
  ])
  return rows.map(auditRow)
}

export function auditRow(row: Row): AuditRow {
  return {
    id: BigInt(row.id as string),
    at: new Date(row.at as string),
    requestId: row.request_id as string,
    actor: row.actor as string,
    action: row.action as string,
    subscription: row.subscription ?? null,
    eventId: big(row.event_id),
    position: big(row.pos),
    reason: row.reason ?? null,
    count: row.count === null ? null : Number(row.count),
    before: parsed(row.before),
    after: parsed(row.after),
  }
}

export function big(value: string | null | undefined): bigint | null {
  return value === null || value === undefined ? null : BigInt(value)
}

export function time(value: string | null | undefined): Date | null {
  return value === null || value === undefined ? null : new Date(value)
}

export function parsed(value: string | null | undefined): unknown {
  return value === null || value === undefined ? null : JSON.parse(value)
}

function json(value: unknown): string | null {
  return value === undefined || value === null ? null : JSON.stringify(value)
}

/** A position as people and programs write it. */
export function positionText(value: unknown, field = 'position'): string {
  const text = typeof value === 'bigint' || typeof value === 'number' ? String(value) : value
  if (typeof text === 'string' && /^\d{1,18}$/.test(text)) return text
  throw new HermodError('HMD_OPTION_INVALID', `${field} must be a whole number`, { field })
}
