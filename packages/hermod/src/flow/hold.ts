/**
 * hold: the breaker of a subscription, kept in its row so that all workers and whoever looks agree.
 * While held nothing is sent; when the pause is over one worker at a time may probe.
 */
import { type Database, select } from '../database.ts'

const HOLD = `select outbox.hold($1, $2, $3, $4, $5)::text as probe_at`
const PROBE = `select outbox.probe($1, $2, $3)::text as won`
const RECOVER = `select outbox.recover($1)::text as recovered`

/** A destination that came back is noticed within this time, unless it asked for more. */
export const probeCapMs = 5_000

export interface Trouble {
  readonly cause: 'unavailable' | 'misconfigured'
  readonly says: string
  readonly afterMs: number
}

export async function hold(db: Database, subscription: string, trouble: Trouble): Promise<void> {
  await select(db, HOLD, [subscription, trouble.cause, trouble.says, trouble.afterMs, probeCapMs])
}

export async function probe(
  db: Database,
  subscription: string,
  owner: string,
  callMs: number,
): Promise<boolean> {
  const [row] = await select(db, PROBE, [subscription, owner, callMs])
  return row?.won === 'true'
}

export async function recover(db: Database, subscription: string): Promise<boolean> {
  const [row] = await select(db, RECOVER, [subscription])
  return row?.recovered === 'true'
}
