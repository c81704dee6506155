/**
 * claim: lease free lanes that have work, and read the next events of the lanes held. Leases run by
 * the database's clock; an idle claim writes nothing.
 */
import { type Database, select, selectArrays } from '../database.ts'
import type { EventDefinitions } from '../define-events.ts'
import { DeliveredEvent } from '../delivered-event.ts'

const CLAIM = `select lane::text, fence::text, pos::text, expired::text from outbox.claim($1, $2, $3, $4, $5)`

const READ = `select lane, pos, id, kind, hash, mark, attempts, version, created_at, type, aggregate_type,
  aggregate_id, key, headers, payload from outbox.read($1, $2, $3::smallint[], $4::bigint[], $5, $6, $7, $8)`

/** Rows of the log looked at per lane and read when the filter matches few of them. */
export const scanRows = 10_000

export interface ClaimedLane {
  readonly lane: number
  readonly fence: bigint
  readonly cursor: bigint
  /** The former owner did not give it back: its lease ran out. */
  readonly expired: boolean
}

export async function claim(
  db: Database,
  subscription: { readonly name: string; readonly revision: number },
  owner: string,
  lanesMax: number,
  leaseMs: number,
): Promise<ClaimedLane[]> {
  const { name, revision } = subscription
  const rows = await select(db, CLAIM, [name, revision, owner, lanesMax, leaseMs])
  return rows.map((row) => ({
    lane: Number(row.lane),
    fence: BigInt(row.fence as string),
    cursor: BigInt(row.pos as string),
    expired: row.expired === 'true',
  }))
}

/** One event of a lane, and what its aggregate's rows mean for it. */
export interface Entry {
  /** Replaced when the subscription loads the current row. */
  event: DeliveredEvent
  readonly lane: number
  readonly hash: number
  /** held: its aggregate waits; dead: its aggregate has a dead letter; due: it has a row itself. */
  readonly mark: 'held' | 'dead' | 'due' | null
  /** Attempts already spent. */
  readonly attempts: number
  /** Its row is no longer there; retention never lets that happen. */
  readonly gone: boolean
}

export interface LaneRead {
  readonly lane: number
  /** Everything up to here was looked at. */
  readonly through: bigint
  readonly fresh: Entry[]
  readonly due: Entry[]
  /** A limit was met: there is probably more. */
  readonly more: boolean
}

export interface ReadLimits {
  readonly count: number
  readonly bytes: number
  /** One worker may look although the destination is held. */
  readonly probing: boolean
}

/** Names of the small codes in the log; they never change. */
export type Kinds = Map<string, readonly [type: string, aggregateType: string]>

/** Undefined: the subscription is paused, held or has a newer revision. */
export async function read(
  db: Database,
  subscription: { readonly name: string; readonly revision: number },
  lanes: readonly { readonly lane: number; readonly after: bigint }[],
  limits: ReadLimits,
  kinds: Kinds,
  definitions: EventDefinitions | undefined,
  listens: (type: string, aggregateType: string) => boolean,
): Promise<LaneRead[] | undefined> {
  const rows = await selectArrays(db, READ, [
    subscription.name,
    subscription.revision,
    lanes.map(({ lane }) => lane),
    lanes.map(({ after }) => String(after)),
    limits.count,
    limits.bytes,
    scanRows,
    limits.probing,
  ])
  if (rows.length === 0) return undefined
  if (rows.some((row) => row[3] !== null && row[3] !== '0' && !kinds.has(row[3] as string))) {
    await learnKinds(db, kinds)
  }
  return lanes.map(({ lane, after }) => laneRead(rows, lane, after, kinds, definitions, listens))
}

async function learnKinds(db: Database, kinds: Kinds): Promise<void> {
  for (const row of await select(db, 'select code::text, type, aggregate_type from outbox.kind')) {
    kinds.set(row.code as string, [row.type as string, row.aggregate_type as string])
  }
}

type Values = (string | null)[]

function laneRead(
  rows: readonly Values[],
  lane: number,
  after: bigint,
  kinds: Kinds,
  definitions: EventDefinitions | undefined,
  listens: (type: string, aggregateType: string) => boolean,
): LaneRead {
  const fresh: Entry[] = []
  const due: Entry[] = []
  const name = String(lane)
  let closed: string | null = null
  for (const row of rows) {
    if (row[0] !== name) continue
    if (row[2] === null) closed = row[1] ?? null
    else if (row[5] === 'due') due.push(entry(row, lane, kinds, definitions))
    // Kinds beyond the code's range carry their names; SQL has not filtered them.
    else if (row[9] === null || listens(row[9] as string, row[10] as string)) {
      fresh.push(entry(row, lane, kinds, definitions))
    }
  }
  const last = fresh.at(-1)?.event.position ?? after
  const end = closed === null ? last : BigInt(closed)
  const through = end > last ? end : last
  return { lane, through, fresh, due, more: closed === null && fresh.length > 0 }
}

function entry(
  row: Values,
  lane: number,
  kinds: Kinds,
  definitions: EventDefinitions | undefined,
): Entry {
  const [, pos, id, kind, hash, mark, attempts, version, createdAt, type, aggregateType] = row
  const names = kinds.get(kind as string)
  const spent = attempts === null ? 0 : Number(attempts)
  const event = new DeliveredEvent({
    id: BigInt(id as string),
    position: BigInt(pos as string),
    lane,
    type: type ?? names?.[0] ?? '',
    aggregateType: aggregateType ?? names?.[1] ?? '',
    aggregateId: row[11] ?? '',
    version: Number(version ?? 1),
    key: row[12] ?? null,
    headersText: row[13] ?? null,
    createdAt: createdAt as string,
    payloadText: row[14] ?? 'null',
    attempt: spent + 1,
    definitions,
  })
  const gone = row[14] === null && mark !== 'held'
  return { event, lane, hash: Number(hash), mark: mark as Entry['mark'], attempts: spent, gone }
}
