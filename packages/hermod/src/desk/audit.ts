/**
 * audit: every decision of an operator locks its lanes first, looks again under the lock, and leaves
 * exactly one audit row. The same request id does nothing twice. A decision on many rows is carried out
 * in several short transactions, so that nobody waits for all of them.
 */
import { randomUUID } from 'node:crypto'
import { type Database, isoTime, type PoolClient, type Row, select, transaction } from '../database.ts'
import { HermodError } from '../errors.ts'
import { didYouMean } from '../nearest.ts'

/** Lanes and their order are the same for every command: two of them cannot deadlock. */
const LOCK = `select lane::text from outbox.lane where subscription = $1 and lane = any ($2::smallint[]) order by lane for update`
const RECALL = `select action, subscription, count::text, after::text from outbox.audit where request_id = $1`
const RECORD = `insert into outbox.audit (request_id, actor, action, subscription, event_id, pos, reason, count, before, after)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10::jsonb)`
const ADD = 'select outbox.add_to_decision($1, $2::bigint[], $3, $4)'
/** Calls with the same request id go one after the other. */
const ALONE = `select pg_advisory_xact_lock(1212370249, outbox.hash('decision', $1))`
const TRAIL = `select id::text, ${isoTime('at')}, request_id, actor, action, subscription, event_id::text, pos::text, reason, count::text,
    before::text, after::text from outbox.audit
  where ($1::text is null or subscription = $1) and ($2::bigint is null or id < $2) order by audit.id desc limit $3`

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
    const known = await begin(tx, subscription, lanes, requestId)
    if (known !== undefined) return recall<R>(known, action, subscription, requestId)
    const made = await work(tx)
    await record(tx, { action, subscription, lanes, by }, requestId, made)
    return { ...(made.after as R), requestId, repeated: false }
  })
}

/** One part of a decision on many rows: what it is about, and how it is carried out under its lanes' locks. */
export interface Part {
  readonly lanes: readonly number[]
  /** `before`: positions the same decision has acted on already. */
  work(tx: PoolClient, before: ReadonlySet<string>): Promise<Done>
}

export interface Done {
  readonly positions: readonly string[]
  readonly superseded: number
}

/**
 * Several transactions and one audit row, which says after each what was done, and that it is open until the last one.
 * A process that dies leaves it open; the same request id goes on.
 */
export async function decideInParts<R extends object>(
  db: Database,
  { action, subscription, by }: Omit<Command, 'lanes'>,
  parts: readonly Part[],
  about: Readonly<Record<string, unknown>>,
): Promise<R & Decided> {
  const requestId = by.requestId ?? randomUUID()
  for (const [at, { lanes, work }] of parts.entries()) {
    const ended = at === parts.length - 1
    const closed = await transaction(db, async (tx) => {
      const known = await begin(tx, subscription, lanes, requestId)
      const so = known === undefined ? undefined : recall<R & Told>(known, action, subscription, requestId)
      if (so !== undefined && so.open === undefined) return so
      const { positions, superseded } = await work(tx, new Set(so?.positions))
      if (so !== undefined) await select(tx, ADD, [requestId, positions, superseded, ended])
      else {
        const open = ended ? {} : { open: true }
        const after = { ...about, done: positions.length, superseded, positions, ...open }
        await record(tx, { action, subscription, lanes, by }, requestId, { count: positions.length, after })
      }
      return undefined
    })
    if (closed !== undefined) return closed
  }
  const [made] = await select(db, RECALL, [requestId])
  return { ...recall<R>(made as Row, action, subscription, requestId), repeated: false }
}

/** What the audit row of a decision in parts holds. */
interface Told {
  readonly positions: readonly string[]
  readonly open?: boolean
}

/** Lock first, then look, in separate statements. The audit row, if this request is known. */
async function begin(
  tx: PoolClient,
  subscription: string,
  lanes: readonly number[],
  requestId: string,
): Promise<Row | undefined> {
  await select(tx, 'set transaction isolation level read committed')
  await select(tx, ALONE, [requestId])
  await select(tx, LOCK, [subscription, lanes])
  const [known] = await select(tx, RECALL, [requestId])
  return known
}

async function record(tx: PoolClient, { action, subscription, by }: Command, requestId: string, made: Made) {
  await select(tx, RECORD, [
    ...[requestId, by.actor, action, subscription, made.eventId ?? null, made.position ?? null],
    ...[by.reason ?? null, made.count, json(made.before), json(made.after)],
  ])
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
