/**
 * The ledger of sinks whose effects must not repeat: a row per event before anything is sent, and `sending`
 * committed right before the effect. `outbox.sending` spends the attempt; `settle` writes the same number of
 * attempts once more, or the one before if the destination was away (`addDue`). These three must agree.
 */
import { type Database, select } from '../database.ts'
import { HermodError } from '../errors.ts'
import { clip, storableJson } from '../foreign-text.ts'
import { besideLocks } from './lease.ts'
import { scanRows } from './read.ts'

const ENLIST = `select outbox.enlist($1, $2, $3, $4::smallint[], $5::bigint[], $6, $7, $8)`
const SENDING = `select outbox.sending($1, $2, $3::smallint, $4::bigint, $5::bigint, $6::json)::text as mine`

export interface LedgerLane {
  readonly lane: number
  readonly fence: bigint
}

/** Writes `pending` rows for the next events and moves the cursor, in one transaction. */
export async function enlist(
  db: Database,
  subscription: {
    readonly name: string
    readonly revision: number
    readonly retry: { readonly attemptsMax: number }
  },
  owner: string,
  lanes: readonly LedgerLane[],
  count: number,
): Promise<void> {
  const { name, revision, retry } = subscription
  await besideLocks(db, name, lanes, (some) => {
    const [numbers, fences] = [some.map(({ lane }) => lane), some.map(({ fence }) => String(fence))]
    return select(db, ENLIST, [name, revision, owner, numbers, fences, count, scanRows, retry.attemptsMax])
  })
}

/** Throws if the lane is no longer leased by this owner, or if an operator has decided: then nothing may be sent. */
export async function sending(
  db: Database,
  subscription: string,
  owner: string,
  lane: LedgerLane,
  position: bigint,
  note: object | undefined,
): Promise<void> {
  const values = [subscription, owner, lane.lane, String(lane.fence), String(position), noteText(note)]
  const [row] = await select(db, SENDING, values)
  if (row?.mine === null) throw new HermodError('HMD_EVENT_WITHDRAWN', `position ${position} of ${subscription}`)
  if (row?.mine !== 'true') {
    throw new HermodError('HMD_LEASE_LOST', `position ${position} of ${subscription} belongs to another worker now`)
  }
}

/** Of a longer note only the beginning is kept. */
const noteCharsMax = 8_000

function noteText(note: object | undefined): string | null {
  if (note === undefined) return null
  const text = storableJson(note)
  return text.length <= noteCharsMax ? text : storableJson({ cut: clip(text, noteCharsMax) })
}
