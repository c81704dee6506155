/** Tells the listener the outcome of a call and which events will be retried. */
import type { Entry } from '../flow/claim.ts'
import type { Settlement } from '../flow/settle.ts'
import { fingerprint } from '../sinks/fingerprint.ts'
import type { Outcome, OutcomeName } from '../sinks/outcome.ts'
import { notify } from '../telemetry.ts'
import type { Station } from './station.ts'

export function tellCall(
  { listener, subscription }: Station,
  entries: readonly Entry[],
  outcomes: readonly (Outcome | undefined)[],
  durationMs: number,
): void {
  if (listener.delivery === undefined && listener.outcome === undefined) return
  const counts: Partial<Record<OutcomeName, number>> = {}
  for (const [index, entry] of entries.entries()) {
    const outcome = outcomes[index]
    if (outcome === undefined) continue
    counts[outcome.outcome] = (counts[outcome.outcome] ?? 0) + 1
    if (outcome.outcome !== 'delivered') tellOutcome(listener, subscription, entry, outcome)
  }
  const first = entries[0] as Entry
  notify(listener, 'delivery', {
    subscription: subscription.name,
    sink: subscription.sink.name,
    lane: first.lane,
    from: first.event.position,
    to: (entries.at(-1) as Entry).event.position,
    events: entries.length,
    bytes: entries.reduce((sum, { event }) => sum + event.bytes, 0),
    durationMs,
    outcomes: counts,
    traceparent: first.event.headers.traceparent,
  })
}

function tellOutcome(
  listener: Station['listener'],
  subscription: Station['subscription'],
  { event, lane }: Entry,
  outcome: Outcome,
): void {
  notify(listener, 'outcome', {
    subscription: subscription.name,
    lane,
    position: event.position,
    type: event.type,
    outcome: outcome.outcome,
    attempt: event.attempt,
    code: outcome.code,
    status: outcome.status,
    fingerprint: fingerprint(subscription.sink.name, outcome),
  })
}

export function tellRetries({ listener, subscription }: Station, { lane, rows }: Settlement): void {
  for (const row of rows) {
    if (row.state !== 'retrying') continue
    const { pos, attempts, after_ms } = row
    const at = { subscription: subscription.name, lane, position: BigInt(pos) }
    notify(listener, 'retry', { ...at, attempt: attempts, delayMs: after_ms })
  }
}
