/**
 * again: one call deadline after a take-over by expiry, the newest states of what the former owner may have
 * been sending are sent once more, so that its late write does not have the last word.
 */
import { type Database, select } from '../database.ts'
import type { Leased } from './lease.ts'
import { scanRows } from './read.ts'
import { items, type Window } from './replay.ts'

const WANTED = `select hashes::text, since::text, up_to::text from outbox.again_wanted($1, $2::smallint, $3, $4)`
const WINDOW = `select through::text, positions::text, ids::text, hashes::text, to_json(aggregates)::text as aggregates
  from outbox.again_window($1, $2::smallint, $3::integer[], $4::bigint, $5::bigint, $6)`
const DONE = `select outbox.again_done($1, $2, $3::smallint, $4::bigint)`

/** Rows of the log that one statement looks at: a retry that was due may lie days back. */
const windowRows = 20_000

export type AgainEvents = Pick<Window, 'positions' | 'ids' | 'hashes'>
type Newest = readonly [position: string, id: string, hash: string]

/** `rowsMax`: the most events the former owner can have read without settling them. In order of position. */
export async function againEvents(
  db: Database,
  subscription: string,
  lane: number,
  rowsMax: number,
): Promise<AgainEvents> {
  const [wanted] = await select(db, WANTED, [subscription, lane, rowsMax, 2 * scanRows])
  const [hashes, upTo] = [wanted?.hashes ?? '{}', wanted?.up_to ?? '0']
  const newest = new Map<string, Newest>()
  for (let after = wanted?.since ?? upTo; BigInt(after) < BigInt(upTo); ) {
    const [row] = await select(db, WINDOW, [subscription, lane, hashes, after, upTo, windowRows])
    const [positions, ids, of] = [items(row?.positions), items(row?.ids), items(row?.hashes)]
    const aggregates = (JSON.parse(row?.aggregates ?? '[]') ?? []) as string[]
    for (const [at, aggregate] of aggregates.entries())
      newest.set(aggregate, [positions[at], ids[at], of[at]] as unknown as Newest)
    after = row?.through ?? upTo
  }
  const found = [...newest.values()].sort(([a], [b]) => (BigInt(a) < BigInt(b) ? -1 : 1))
  return {
    positions: found.map(([position]) => position),
    ids: found.map(([, id]) => id),
    hashes: found.map(([, , hash]) => hash),
  }
}

export async function againDone(
  db: Database,
  subscription: string,
  owner: string,
  { lane, fence }: Leased,
): Promise<void> {
  await select(db, DONE, [subscription, owner, lane, String(fence)])
}
