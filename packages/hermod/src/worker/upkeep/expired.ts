/**
 * Deliveries that are older than their retention. With an archive, what was not delivered (dead letters,
 * unknown outcomes, what was given up) is written there first; what could not be written stays.
 */
import { createHash } from 'node:crypto'
import { type Database, isoTime, type Row, select } from '../../database.ts'
import type { Retention } from '../../options.ts'
import type { Listener } from '../../telemetry.ts'
import { type Archive, storeLines } from './archive.ts'
import { tellArchive } from './retention.ts'

const PRUNE = 'select outbox.prune_deliveries($1::numeric, $2, $3::text[])::text as rows'
const EXPIRED = `select subscription, lane::text, pos::text, ${isoTime('updated_at')}, line from outbox.expired($1::numeric, $2)`
const REMOVE = 'select outbox.prune_archived($1, $2::smallint, $3::bigint[], $4::timestamptz[], $5)::text as rows'

const receipts = ['delivered']
const undelivered = ['dead', 'unknown', 'discarded']

/** Removes at most `rowsMax`, and says how many went. */
export async function removeExpired(
  db: Database,
  { deliveryDays, archive }: Retention,
  rowsMax: number,
  listener: Listener,
): Promise<number> {
  const states = archive === undefined ? [...undelivered, ...receipts] : receipts
  const [pruned] = await select(db, PRUNE, [deliveryDays, rowsMax, states])
  const rows = Number(pruned?.rows)
  if (archive === undefined) return rows
  try {
    return Math.max(rows, await archiveExpired(db, deliveryDays, archive, rowsMax))
  } catch (cause) {
    tellArchive(listener, 'expired deliveries', cause)
    return rows
  }
}

async function archiveExpired(db: Database, days: number, archive: Archive, rowsMax: number): Promise<number> {
  const rows = await select(db, EXPIRED, [days, rowsMax])
  if (rows.length === 0) return 0
  const text = `${rows.map(({ line }) => line).join('\n')}\n`
  const place = await storeLines([text], expiredName(rows, text), archive)
  let gone = 0
  for (const lane of byLane(rows)) {
    const { subscription, lane: number } = lane[0] as Row
    const positions = lane.map(({ pos }) => pos)
    const times = lane.map(({ updated_at: at }) => at)
    const [row] = await select(db, REMOVE, [subscription as string, number as string, positions, times, place])
    gone += Number(row?.rows)
  }
  return gone
}

function byLane(rows: readonly Row[]): Row[][] {
  const lanes = new Map<string, Row[]>()
  for (const row of rows) {
    const key = `${row.subscription} ${row.lane}`
    lanes.set(key, [...(lanes.get(key) ?? []), row])
  }
  return [...lanes.values()]
}

/** Sorts by the day of its oldest row. The same rows have the same name: written twice, it is one file. */
function expiredName([oldest]: readonly Row[], text: string): string {
  const day = String(oldest?.updated_at).slice(0, 10)
  return `delivery-${day}-${createHash('sha256').update(text).digest('hex').slice(0, 16)}.ndjson.gz`
}
