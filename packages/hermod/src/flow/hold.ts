/**
 * hold: the circuit breaker of a subscription, kept in its row so that all workers share it. While a
 * subscription is held, nothing is sent; after the pause one worker at a time may probe.
 */
import { type Database, select, sendText } from '../database.ts'
import { clip } from '../foreign-text.ts'

const HOLD = `select outbox.hold($1, $2, $3, $4, $5, $6)`
const PROBE = `select outbox.probe($1, $2, $3)::text as won`
const UNPROBE = `select outbox.unprobe($1, $2)`
const RECOVER = `select outbox.recover($1)::text as recovered`

/** The longest pause between probes, unless the destination asked for a longer one. */
export const probeCapMs = 2_000

/** The most characters kept of what the destination says. */
const saysCharsMax = 1_000

export interface Trouble {
  readonly cause: 'unavailable' | 'misconfigured'
  readonly says: string
  readonly afterMs: number
}

/** `prober`: set if this was a probe. Other failures lengthen the pause only by their own `afterMs`. */
export async function hold(
  db: Database,
  subscription: string,
  { cause, says, afterMs }: Trouble,
  prober: string | null,
): Promise<void> {
  const text = clip(says, saysCharsMax)
  await sendText((fit = (one) => one) =>
    select(db, HOLD, [subscription, cause, fit(text), afterMs, probeCapMs, prober]),
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
