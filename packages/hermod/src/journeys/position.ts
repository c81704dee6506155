/**
 * Where the log is, and whether a subscription has passed a place in it. `numberedHead` covers
 * everything committed before it was called, including events that were not numbered yet.
 */
import { type Database, select } from '../database.ts'
import { HermodError } from '../errors.ts'
import { sequence } from '../flow/sequence.ts'

const PAUSE_MS = 10

/** Lanes that still have log rows between their cursor and the position, and why they may not move. */
const OPEN = `select s.mode, s.mode_says, s.held_cause, s.held_says,
    (select count(*) from outbox.lane l cross join lateral outbox.cursor_of(s.name, l.lane) c
      where l.subscription = s.name and exists (select from outbox.log g
        where g.pos > c.pos and g.pos <= $2::bigint and (s.lanes = 1 or g.lane = l.lane)))::text as lanes,
    (select count(*) from outbox.worker w where s.name = any (w.subscriptions)
        and w.heartbeat_at > outbox.clock() - interval '5 seconds')::text as workers
  from outbox.subscription s where s.name = $1`

/** The lowest place where something may still be in flight; the head when nothing is. */
const FLOOR = `select coalesce(min(c.pos), (select pos from outbox.step order by id desc limit 1), 0)::text as pos
  from outbox.subscription s join outbox.lane l on l.subscription = s.name cross join lateral outbox.cursor_of(s.name, l.lane) c
 where s.name = $1 and exists (select from outbox.log g where g.pos > c.pos and (s.lanes = 1 or g.lane = l.lane))`

interface Stopping {
  look(): void
  pause(ms: number): Promise<void>
}

/** Everything that was committed before the call has a position up to this one. */
export async function numberedHead(db: Database, run: Stopping): Promise<bigint> {
  for (;;) {
    // No row: another session is numbering, and what it numbers is not in the log yet.
    const step = await sequence(db)
    if (step?.more === false) return step.head
    if (step === undefined) await run.pause(PAUSE_MS)
    else run.look()
  }
}

export interface Passing {
  readonly passed: boolean
  /** Why it is waiting, if that is known. */
  readonly why: string | undefined
}

export async function hasPassed(db: Database, subscription: string, position: bigint): Promise<Passing> {
  const [row] = await select(db, OPEN, [subscription, String(position)])
  if (row === undefined) {
    throw new HermodError(
      'HMD_SUBSCRIPTION_UNKNOWN',
      `there is no subscription ${subscription} yet: nothing keeps its index up to date`,
      { field: 'subscription', fix: 'Start a worker that serves it once, or correct the name.' },
    )
  }
  return { passed: row.lanes === '0', why: reason(row, subscription) }
}

function reason(row: Record<string, string | null>, subscription: string): string | undefined {
  if (row.mode !== 'live') return `${subscription} is ${row.mode}: ${row.mode_says ?? 'no reason given'}`
  if (row.held_cause) return `${subscription} is ${row.held_cause}: ${row.held_says ?? ''}`
  if (row.workers === '0') return `no worker serves ${subscription}`
  return undefined
}

export async function floorOf(db: Database, subscription: string): Promise<bigint> {
  const [row] = await select(db, FLOOR, [subscription])
  return BigInt(row?.pos ?? 0)
}
