/**
 * Waits until everything committed so far is delivered or has a row that says why not. Runs a worker
 * of its own when nobody else does.
 */
import { select } from '../database.ts'
import { HermodError } from '../errors.ts'
import type { Outbox } from '../outbox.ts'

const OPEN = `
  select ((select count(*) from outbox.subscription s
     join outbox.lane l on l.subscription = s.name
    cross join lateral outbox.cursor_of(s.name, l.lane) c
     join outbox.log g on g.pos > c.pos and (s.lanes = 1 or g.lane = l.lane)
    where s.mode = 'live')
    + (select count(*) from outbox.delivery d join outbox.subscription s on s.name = d.subscription
        where s.mode = 'live' and (d.state = 'sending' or d.next_attempt_at <= outbox.clock())))::text as open,
  exists (select from outbox.worker where heartbeat_at > outbox.clock() - interval '5 seconds')::text as served`

export interface DrainOptions {
  readonly timeoutMs?: number
}

export async function drain(
  // biome-ignore lint/suspicious/noExplicitAny: any declaration of events
  outbox: Outbox<any>,
  { timeoutMs = 30_000 }: DrainOptions = {},
): Promise<void> {
  const untilMs = performance.now() + timeoutMs
  // A subscription that was declared but never served is not installed, and has nothing open yet.
  let installed = false
  for (;;) {
    // No step: another session is numbering, and what it numbers is not in the log yet.
    const [step] = await select(outbox.db, 'select more::text from outbox.sequence()')
    const [row] = await select(outbox.db, OPEN)
    const numbered = step?.more === 'false'
    if (numbered && row?.open === '0' && (installed || row.served === 'true')) return
    if (performance.now() > untilMs) {
      throw new HermodError('HMD_DRAIN_TIMEOUT', `${row?.open} deliveries are still open after ${timeoutMs} ms`)
    }
    if (row?.served === 'true') await new Promise((resolve) => setTimeout(resolve, 10))
    else await outbox.runOnce({ deadlineMs: untilMs - performance.now(), upkeep: false })
    installed = true
  }
}
