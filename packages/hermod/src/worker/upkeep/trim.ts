/**
 * Trimming: where a leaf cannot go as a whole, its old rows do, in small batches, oldest first. That is
 * how "keep 7 days" means 7 to 8 days also where a leaf takes years to fill.
 */
import { type Database, select } from '../../database.ts'
import type { Retention } from '../../options.ts'
import type { Listener } from '../../telemetry.ts'
import { archived, type Leaf, readLeaves } from './retention.ts'

const OVERDUE = 'select outbox.overdue($1, $2, $3::numeric)::text as overdue'
const CUT = 'select outbox.log_cut($1, $2::numeric)::text as cut, outbox.log_first($1)::text as first'
const LOG = 'select outbox.trim_log($1, $2::numeric, $3::bigint, $4)::text as gone'
const EVENTS = 'select last_id::text, gone::text from outbox.trim_events($1, $2::numeric, $3::bigint, $4)'
const ATTEMPTS = 'select outbox.trim_attempts($1, $2::numeric, $3)::text as gone'

const pageRows = 5_000
/** A page is a short transaction of about 20 ms; what is left after so many is for the next turn. */
const pagesMax = 100

/** Pages that this turn may still take. */
interface Budget {
  pages: number
}

/** How many rows went of each leaf. */
export type Trimmed = Map<string, number>

/** `unarchived`: leaves whose archive has just failed; that was told. */
export async function trim(
  db: Database,
  retention: Retention,
  listener: Listener,
  unarchived: (name: string) => boolean = () => false,
): Promise<Trimmed> {
  const trimmed: Trimmed = new Map()
  const budget: Budget = { pages: pagesMax }
  const note = ({ name }: Leaf, rows: number) => rows > 0 && trimmed.set(name, rows)
  const leaves = (await readLeaves(db)).filter(({ emptied }) => !emptied)
  const of = (parent: string) => leaves.filter((leaf) => leaf.parent === parent)
  for (const leaf of of('log')) {
    // In order: positions stay dense from the first one there is.
    if (unarchived(leaf.name)) break
    const { rows, all } = await trimLog(db, leaf, retention, listener, budget)
    note(leaf, rows)
    if (!all) break
  }
  for (const leaf of of('event')) note(leaf, await trimEvents(db, leaf, retention.eventDays, budget))
  for (const leaf of of('attempt')) note(leaf, await trimAttempts(db, leaf, retention.attemptDays, budget))
  return trimmed
}

async function isOverdue(db: Database, { parent, name }: Leaf, days: number): Promise<boolean> {
  const [row] = await select(db, OVERDUE, [parent, name, days])
  return row?.overdue === 'true'
}

/** `all`: nothing of the leaf is left, so that the next one may be looked at. */
async function trimLog(
  db: Database,
  leaf: Leaf,
  { eventDays, archive }: Retention,
  listener: Listener,
  budget: Budget,
): Promise<{ rows: number; all: boolean }> {
  const [found] = await select(db, CUT, [leaf.name, eventDays])
  if (found?.first == null) return { rows: 0, all: true }
  const to = least(found.cut as string, leaf.to as string)
  const due = BigInt(to) > BigInt(found.first) && (await isOverdue(db, leaf, eventDays))
  if (!due) return { rows: 0, all: false }
  if (archive !== undefined && !(await archived(db, { name: leaf.name, to, whole: false }, archive, listener))) {
    return { rows: 0, all: false }
  }
  const rows = await pages(budget, async () => {
    const [row] = await select(db, LOG, [leaf.name, eventDays, to, pageRows])
    return { gone: Number(row?.gone), more: row?.gone !== '0' }
  })
  const [left] = await select(db, CUT, [leaf.name, eventDays])
  return { rows, all: left?.first == null }
}

function least(a: string, b: string): string {
  return BigInt(a) < BigInt(b) ? a : b
}

/** From the lowest id on: what must stay is passed over. */
async function trimEvents(db: Database, leaf: Leaf, days: number, budget: Budget): Promise<number> {
  if (!(await isOverdue(db, leaf, days))) return 0
  let after: string | null = '0'
  return pages(budget, async () => {
    const [row] = await select(db, EVENTS, [leaf.name, days, after, pageRows])
    after = row?.last_id ?? null
    return { gone: Number(row?.gone), more: after !== null }
  })
}

async function trimAttempts(db: Database, leaf: Leaf, days: number, budget: Budget): Promise<number> {
  if (!(await isOverdue(db, leaf, days))) return 0
  return pages(budget, async () => {
    const [row] = await select(db, ATTEMPTS, [leaf.name, days, pageRows])
    return { gone: Number(row?.gone), more: Number(row?.gone) === pageRows }
  })
}

async function pages(budget: Budget, next: () => Promise<{ gone: number; more: boolean }>): Promise<number> {
  let rows = 0
  for (let more = true; more && budget.pages > 0; budget.pages--) {
    const page = await next()
    rows += page.gone
    more = page.more
  }
  return rows
}
