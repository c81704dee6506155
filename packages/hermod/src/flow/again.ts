/**
 * again: one call deadline after a take-over by expiry, the newest states of what the former owner may have
 * been sending are sent once more, so that its late write does not have the last word.
 */
import { type Database, select } from '../database.ts'
import type { Leased } from './lease.ts'
import { scanRows } from './read.ts'
import { items, type Window } from './replay.ts'

const EVENTS = `select positions::text, ids::text, hashes::text from outbox.again_events($1, $2::smallint, $3, $4)`
const DONE = `select outbox.again_done($1, $2, $3::smallint, $4::bigint)`

export type AgainEvents = Pick<Window, 'positions' | 'ids' | 'hashes'>

/** `rowsMax`: the most events the former owner can have read without settling them. */
export async function againEvents(
  db: Database,
  subscription: string,
  lane: number,
  rowsMax: number,
): Promise<AgainEvents> {
  const [row] = await select(db, EVENTS, [subscription, lane, rowsMax, 2 * scanRows])
  return { positions: items(row?.positions), ids: items(row?.ids), hashes: items(row?.hashes) }
}

export async function againDone(
  db: Database,
  subscription: string,
  owner: string,
  { lane, fence }: Leased,
): Promise<void> {
  await select(db, DONE, [subscription, owner, lane, String(fence)])
}
