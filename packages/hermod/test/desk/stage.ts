// A small stage for the desk's tests: an outbox whose sinks answer as told, without a running worker.

import type { TestDatabase } from '../../../../test/support/database.ts'
import { subscribe } from '../../src/flow/subscribe.ts'
import { createOutbox, type NewEvent, type Outbox, type SubscriptionOptions } from '../../src/index.ts'
import { subscriptionOptions } from '../../src/options.ts'
import type { Outcome } from '../../src/sinks/sink.ts'
import { type MemorySink, memorySink } from '../../src/testing/index.ts'

export const BY = { actor: 'ada', reason: 'because' }

export type Stage = {
  readonly outbox: Outbox
  readonly sinks: Record<string, MemorySink>
  /** Commits and returns the ids. */
  emit(...events: NewEvent[]): Promise<bigint[]>
  /** Numbers what is committed. */
  number(): Promise<void>
  /** Delivers what is due now. */
  work(...subscriptions: string[]): Promise<void>
  /** The words of an event, by subscription. */
  words(id: bigint | undefined): Promise<Record<string, string>>
  positionOf(id: bigint | undefined): Promise<bigint>
}

export type Declared = Partial<Omit<SubscriptionOptions, 'sink'>> & {
  answer?: (event: { aggregateId: string; position: bigint; payload: unknown }) => Outcome | undefined
  ledger?: boolean
}

/** Subscriptions are installed at the head of the log, unless they say otherwise. */
export async function stage(db: TestDatabase, subscriptions: Record<string, Declared>): Promise<Stage> {
  const outbox = createOutbox({ pool: db.pool })
  const sinks: Record<string, MemorySink> = {}
  const number = async () => {
    while ((await db.query('select more from outbox.sequence()'))[0]?.more) {}
  }
  await number()
  for (const [name, { answer, ledger = false, ...options }] of Object.entries(subscriptions)) {
    const sink = memorySink({ name, capabilities: { ledger }, ...(answer && { answer }) })
    sinks[name] = sink
    const patient = { baseMs: 3_600_000, capMs: 3_600_000 }
    const declared = { revision: 1, types: ['*'], retry: patient, ...options, sink }
    outbox.subscribe(name, declared)
    await subscribe(db.pool as never, subscriptionOptions(name, declared))
  }
  return {
    outbox,
    sinks,
    number,
    emit: (...events) => outbox.transaction((tx) => outbox.emit(tx, events)),
    work: async (...only) => {
      await number()
      const some = only.length > 0 ? { subscriptions: only } : {}
      await outbox.runOnce({ deadlineMs: 10_000, upkeep: false, ...some })
    },
    words: async (id) => {
      const rows = await db.query<{ subscription: string; state: string }>(
        'select subscription, state from outbox.status where event_id = $1',
        [id],
      )
      return Object.fromEntries(rows.map(({ subscription, state }) => [subscription, state]))
    },
    positionOf: async (id) => {
      const [row] = await db.query<{ pos: string }>('select pos from outbox.log_of($1)', [id])
      return BigInt(row?.pos ?? -1)
    },
  }
}

/** Several events of documents `a`, `b`, … with a running number as payload. */
export function docs(...ids: string[]): NewEvent[] {
  return ids.map((id, n) => ({
    type: 'document.updated',
    aggregate: ['document', id],
    payload: { n },
  }))
}
