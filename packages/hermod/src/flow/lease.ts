/**
 * renew, release and leased: keeps lanes while working, gives them back when done, asks again after a lost
 * answer. A lane that is not returned belongs to another worker.
 */
import { type Database, select } from '../database.ts'

const RENEW = `select lane::text from outbox.renew($1, $2, $3::smallint[], $4::bigint[], $5) as lane`
const RELEASE = 'select outbox.release($1, $2, $3::smallint[], $4::bigint[])'
const ABANDON = `select outbox.abandon($1, $2, $3::smallint[], $4::bigint[])`
const LEASED = `select lane::text, pos::text from outbox.leased($1, $2, $3::smallint[], $4::bigint[])`

const OWNED = `select lane::text, fence::text from outbox.lane where subscription = $1 and owner = $2`

export interface Leased {
  readonly lane: number
  readonly fence: bigint
}

export async function renew(
  db: Database,
  subscription: string,
  owner: string,
  lanes: readonly Leased[],
  leaseMs: number,
): Promise<Set<number>> {
  const rows = await select(db, RENEW, [subscription, owner, ...columns(lanes), leaseMs])
  return new Set(rows.map((row) => Number(row.lane)))
}

export async function release(
  db: Database,
  subscription: string,
  owner: string,
  lanes: readonly Leased[],
): Promise<void> {
  if (lanes.length > 0) await select(db, RELEASE, [subscription, owner, ...columns(lanes)])
}

/** Gives lanes back although a call may still be under way: the next owner takes them over as if the lease had run out. */
export async function abandon(
  db: Database,
  subscription: string,
  owner: string,
  lanes: readonly Leased[],
): Promise<void> {
  await select(db, ABANDON, [subscription, owner, ...columns(lanes)])
}

/** Lane → its cursor in the database. */
export async function leased(
  db: Database,
  subscription: string,
  owner: string,
  lanes: readonly Leased[],
): Promise<Map<number, bigint>> {
  const rows = await select(db, LEASED, [subscription, owner, ...columns(lanes)])
  return new Map(rows.map((row) => [Number(row.lane), BigInt(row.pos as string)]))
}

/** All lanes that this owner has, according to the database. */
export async function owned(db: Database, subscription: string, owner: string): Promise<Leased[]> {
  const rows = await select(db, OWNED, [subscription, owner])
  return rows.map((row) => ({ lane: Number(row.lane), fence: BigInt(row.fence as string) }))
}

function columns(lanes: readonly Leased[]): [number[], string[]] {
  return [lanes.map(({ lane }) => lane), lanes.map(({ fence }) => String(fence))]
}
