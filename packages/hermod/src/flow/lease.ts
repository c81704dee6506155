/**
 * renew, release and leased: keeps lanes while working, gives them back when done, asks again after a lost
 * answer. A lane that is not returned belongs to another worker.
 */
import { type Database, isLockTimeout, type Row, select } from '../database.ts'

const RENEW = `select lane::text from outbox.renew($1, $2, $3::smallint[], $4::bigint[], $5) as lane`
const RELEASE = 'select outbox.release($1, $2, $3::smallint[], $4::bigint[])'
const ABANDON = `select outbox.abandon($1, $2, $3::smallint[], $4::bigint[])`
const LEASED = `select lane::text, pos::text from outbox.leased($1, $2, $3::smallint[], $4::bigint[])`

const UNLOCKED = `select lane::text from outbox.unlocked($1, $2::smallint[]) as lane`
const OWNED = `select lane::text, fence::text from outbox.lane where subscription = $1 and owner = $2`

export interface Leased {
  readonly lane: number
  readonly fence: bigint
}

export interface Renewed {
  readonly kept: ReadonlySet<number>
  /** Somebody holds their rows: neither renewed nor lost. */
  readonly locked: ReadonlySet<number>
}

export async function renew(
  db: Database,
  subscription: string,
  owner: string,
  lanes: readonly Leased[],
  leaseMs: number,
): Promise<Renewed> {
  const { rows, locked } = await besideLocks(db, subscription, lanes, (some) =>
    select(db, RENEW, [subscription, owner, ...columns(some), leaseMs]),
  )
  return { kept: new Set(rows.map((row) => Number(row.lane))), locked }
}

/** Of these lanes, those whose row nobody else holds. */
export async function unlocked(db: Database, subscription: string, lanes: readonly number[]): Promise<Set<number>> {
  const rows = await select(db, UNLOCKED, [subscription, lanes])
  return new Set(rows.map((row) => Number(row.lane)))
}

/** If somebody holds the row of a lane, the statement is made for the others. */
export async function besideLocks<L extends Leased>(
  db: Database,
  subscription: string,
  lanes: readonly L[],
  work: (lanes: readonly L[]) => Promise<Row[]>,
): Promise<{ readonly rows: Row[]; readonly locked: ReadonlySet<number> }> {
  try {
    return { rows: await work(lanes), locked: new Set() }
  } catch (error) {
    if (!isLockTimeout(error)) throw error
  }
  const numbers = lanes.map(({ lane }) => lane)
  const free = await unlocked(db, subscription, numbers)
  const some = lanes.filter(({ lane }) => free.has(lane))
  const rows = some.length === 0 ? [] : await work(some)
  return { rows, locked: new Set(numbers.filter((lane) => !free.has(lane))) }
}

/** The lease of a lane whose row somebody holds runs out by itself. */
export async function release(
  db: Database,
  subscription: string,
  owner: string,
  lanes: readonly Leased[],
): Promise<void> {
  if (lanes.length === 0) return
  await besideLocks(db, subscription, lanes, (some) => select(db, RELEASE, [subscription, owner, ...columns(some)]))
}

/** Gives lanes back although a call may still be under way: the next owner takes them over as if the lease had run out. */
export async function abandon(
  db: Database,
  subscription: string,
  owner: string,
  lanes: readonly Leased[],
): Promise<void> {
  await besideLocks(db, subscription, lanes, (some) => select(db, ABANDON, [subscription, owner, ...columns(some)]))
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
