/**
 * hold: the breaker of a subscription, kept in its row so that all workers and whoever looks agree.
 * While held nothing is sent; when the pause is over one worker at a time may probe.
 */
import { type Database, select, sendText } from '../database.ts'

const HOLD = `select outbox.hold($1, $2, $3, $4, $5, $6)::text as probe_at`
const PROBE = `select outbox.probe($1, $2, $3)::text as won`
const UNPROBE = `select outbox.unprobe($1, $2)::text as given_up`
const RECOVER = `select outbox.recover($1)::text as recovered`

/** A destination that came back is noticed within this time, unless it asked for more. */
export const probeCapMs = 2_000

export interface Trouble {
  readonly cause: 'unavailable' | 'misconfigured'
  readonly says: string
  readonly afterMs: number
}

/** `prober`: who was probing; a failure of anybody else does not lengthen the pause. */
export async function hold(
  db: Database,
  subscription: string,
  { cause, says, afterMs }: Trouble,
  prober: string | null,
): Promise<void> {
  await sendText((fit = (text) => text) =>
    select(db, HOLD, [subscription, cause, fit(says), afterMs, probeCapMs, prober]),
  )
}

export async function probe(db: Database, subscription: string, owner: string, callMs: number): Promise<boolean> {
  const [row] = await select(db, PROBE, [subscription, owner, callMs])
  return row?.won === 'true'
}

/** The right to probe is given up unused. */
export async function unprobe(db: Database, subscription: string, prober: string): Promise<void> {
  await select(db, UNPROBE, [subscription, prober])
}

export async function recover(db: Database, subscription: string): Promise<boolean> {
  const [row] = await select(db, RECOVER, [subscription])
  return row?.recovered === 'true'
}
