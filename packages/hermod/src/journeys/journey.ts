/**
 * A journey's row: made with its audit row, taken under a lease by the database's clock, kept while
 * it runs, ended once. Whoever finds an expired lease continues from the progress in the row.
 */
import { type Database, isoTime, type PoolClient, type Row, select } from '../database.ts'
import { big, type Decided, type Decision, decide, parsed, time } from '../desk/audit.ts'
import { clip, storableJson } from '../foreign-text.ts'

const COLUMNS = `id::text, kind, subject, state, phase, plan::text, progress::text, result::text, error, asked, owner,
  ${isoTime('owner_until')}, requested_by, reason, ${isoTime('created_at')}, ${isoTime('started_at')}, ${isoTime('ended_at')},
  ${isoTime('updated_at')}`
const CREATE = `insert into outbox.journey (kind, subject, plan, progress, requested_by, reason)
  values ($1, $2, $3::jsonb, $4::jsonb, $5, $6) returning ${COLUMNS}`
const TAKE = `select ${COLUMNS} from outbox.take_journey($1, $2::text[], $3::text[], $4::bigint, $5)`
const KEEP = `select outbox.keep_journey($1::bigint, $2, $3, $4, $5::jsonb) as asked`
const END = `select outbox.end_journey($1::bigint, $2, $3, $4::jsonb, $5)::text as mine`
const SHOW = `select ${COLUMNS} from outbox.journey where id = $1::bigint`
const LIST = `select ${COLUMNS} from outbox.journey
  where ($1::text is null or kind = $1) and ($2::text is null or subject = $2) and ($3::text[] is null or state = any ($3))
    and ($4::bigint is null or id < $4) order by journey.id desc limit $5`

export const journeyKinds = ['replay', 'rebuild', 'verify', 'backfill'] as const
export type JourneyKind = (typeof journeyKinds)[number]

export const journeyStates = [
  ...(['queued', 'running', 'paused', 'succeeded', 'failed', 'cancelled'] as const),
] as const
export type JourneyState = (typeof journeyStates)[number]

/** What an operator asked for. */
export type Asked = 'run' | 'pause' | 'cancel'

/** How far it is, and what this kind needs to continue after a crash. */
export interface Progress {
  readonly done?: number
  readonly total?: number
  readonly ratePerSecond?: number
  readonly etaMs?: number
  readonly [key: string]: unknown
}

export interface Journey {
  readonly id: bigint
  readonly kind: JourneyKind
  /** The subscription, or the index. */
  readonly subject: string
  readonly state: JourneyState
  readonly phase: string | null
  /** What was asked. */
  readonly plan: Readonly<Record<string, unknown>>
  readonly progress: Progress
  readonly result: Readonly<Record<string, unknown>> | null
  readonly error: string | null
  readonly asked: Asked
  readonly owner: string | null
  readonly ownerUntil: Date | null
  readonly requestedBy: string
  readonly reason: string | null
  readonly createdAt: Date
  readonly startedAt: Date | null
  readonly endedAt: Date | null
  readonly updatedAt: Date
}

export interface NewJourney {
  readonly kind: JourneyKind
  readonly subject: string
  readonly plan: object
  readonly progress?: Progress | undefined
}

/** Queued, with its audit row; `also` runs in the same transaction. */
export async function createJourney(
  db: Database,
  { kind, subject, plan, progress = {} }: NewJourney,
  by: Decision,
  also: (tx: PoolClient, id: string) => Promise<void> = async () => {},
): Promise<Journey & Decided> {
  const command = { action: `${kind}.start`, subscription: subject, lanes: [], by }
  const made = await decide<{ journey: string }>(db, command, async (tx) => {
    const [row] = await select(tx, CREATE, [
      ...[kind, subject, JSON.stringify(plan), JSON.stringify(progress)],
      ...[by.actor, by.reason ?? null],
    ])
    await also(tx, row?.id as string)
    return { count: 1, after: { journey: row?.id, plan } }
  })
  const journey = (await findJourney(db, BigInt(made.journey))) as Journey
  return { ...journey, requestId: made.requestId, repeated: made.repeated }
}

/** What a runner can run: a kind, for one subject or for any (null). */
export interface Takes {
  readonly kind: JourneyKind
  readonly subject: string | null
}

/** Takes the next journey that nobody runs, or the one that is named. */
export async function takeJourney(
  db: Database,
  owner: string,
  takes: readonly Takes[],
  leaseMs: number,
  id?: bigint,
): Promise<Journey | undefined> {
  const [row] = await select(db, TAKE, [
    ...[owner, takes.map(({ kind }) => kind), takes.map(({ subject }) => subject)],
    ...[id === undefined ? null : String(id), leaseMs],
  ])
  return row && journeyOf(row)
}

/** Extends the lease and adds to the progress. Undefined: another process has it now. */
export async function keepJourney(
  db: Database,
  id: bigint,
  owner: string,
  leaseMs: number,
  { phase, progress }: { phase?: string | undefined; progress?: Progress | undefined } = {},
): Promise<Asked | undefined> {
  const more = progress === undefined ? null : storableJson(progress)
  const [row] = await select(db, KEEP, [String(id), owner, leaseMs, phase ?? null, more])
  return (row?.asked ?? undefined) as Asked | undefined
}

/** Of the text that says why it failed. */
const errorCharsMax = 2_000

export type Ending = Exclude<JourneyState, 'running'>

/** The owner ends or releases it. False: another process has it now. */
export async function endJourney(
  db: Database,
  id: bigint,
  owner: string,
  state: Ending,
  { result, error }: { result?: object | undefined; error?: string | undefined } = {},
): Promise<boolean> {
  const said = result === undefined ? null : storableJson(result)
  const [row] = await select(db, END, [
    String(id),
    owner,
    state,
    said,
    error === undefined ? null : clip(error, errorCharsMax),
  ])
  return row?.mine === 'true'
}

export async function findJourney(db: Database | PoolClient, id: bigint): Promise<Journey | undefined> {
  const [row] = await select(db, SHOW, [String(id)])
  return row && journeyOf(row)
}

export interface JourneyFilter {
  readonly kind?: JourneyKind | undefined
  readonly subject?: string | undefined
  readonly states?: readonly JourneyState[] | undefined
  /** Only those with a lower id: the last of the page before. */
  readonly before?: bigint | undefined
  /** 1 to 200; 50 when left out. */
  readonly limit?: number | undefined
}

/** Newest first. */
export async function listJourneys(db: Database, filter: JourneyFilter = {}): Promise<Journey[]> {
  const { kind, subject, states, before, limit = 50 } = filter
  const rows = await select(db, LIST, [
    ...[kind ?? null, subject ?? null, states ?? null],
    ...[before === undefined ? null : String(before), Math.min(Math.max(1, limit), 200)],
  ])
  return rows.map(journeyOf)
}

export function journeyOf(row: Row): Journey {
  return {
    id: BigInt(row.id as string),
    kind: row.kind as JourneyKind,
    subject: row.subject as string,
    state: row.state as JourneyState,
    phase: row.phase ?? null,
    plan: parsed(row.plan) as Journey['plan'],
    progress: parsed(row.progress) as Progress,
    result: parsed(row.result) as Journey['result'],
    error: row.error ?? null,
    asked: row.asked as Asked,
    owner: row.owner ?? null,
    ownerUntil: time(row.owner_until),
    requestedBy: row.requested_by as string,
    reason: row.reason ?? null,
    createdAt: time(row.created_at) as Date,
    startedAt: time(row.started_at),
    endedAt: time(row.ended_at),
    updatedAt: time(row.updated_at) as Date,
  }
}

export function isEnded({ state }: Pick<Journey, 'state'>): boolean {
  return state === 'succeeded' || state === 'failed' || state === 'cancelled'
}

/** Big numbers of a plan or a progress, as they are stored. */
export function bigOf(value: unknown): bigint | null {
  return big(typeof value === 'number' ? String(value) : (value as string | null | undefined))
}
