/**
 * park: a destination took a call as a task. Its handle is stored with the lanes it covers, so that their
 * next owner asks for the outcome instead of sending again.
 */
import { type Database, select } from '../database.ts'
import type { Leased } from './lease.ts'

const PARK = `select lane::text from outbox.park($1, $2, $3, $4::json) as lane`
const PARKED = `select u.lane::text, p.handle, p."from"::text, p."to"::text, p.delivered::text, p.superseded::text,
    (extract(epoch from outbox.clock() - p.since) * 1000)::bigint::text as age_ms
  from unnest($2::smallint[]) as u(lane) cross join lateral outbox.parked_in($1, u.lane) p`

/** One lane's part of a parked call: everything in (from, to] depends on this call alone. */
export interface ParkedLane extends Leased {
  readonly from: bigint
  readonly to: bigint
  readonly delivered: number
  readonly superseded: number
}

export interface FoundParked extends Omit<ParkedLane, 'fence'> {
  readonly handle: string
  readonly ageMs: number
}

/** Returns the lanes it was recorded for; the others were taken over, or their cursor has moved. */
export async function park(
  db: Database,
  subscription: string,
  owner: string,
  handle: string,
  lanes: readonly ParkedLane[],
): Promise<Set<number>> {
  if (lanes.length === 0) return new Set()
  const text = lanes.map((lane) => ({
    ...lane,
    fence: String(lane.fence),
    from: String(lane.from),
    to: String(lane.to),
  }))
  const rows = await select(db, PARK, [subscription, owner, handle, JSON.stringify(text)])
  return new Set(rows.map((row) => Number(row.lane)))
}

/** What former owners of these lanes left parked, if it is still valid. */
export async function parked(db: Database, subscription: string, lanes: readonly number[]): Promise<FoundParked[]> {
  const rows = await select(db, PARKED, [subscription, lanes])
  return rows.map((row) => ({
    lane: Number(row.lane),
    handle: row.handle as string,
    from: BigInt(row.from as string),
    to: BigInt(row.to as string),
    delivered: Number(row.delivered),
    superseded: Number(row.superseded),
    ageMs: Number(row.age_ms),
  }))
}
