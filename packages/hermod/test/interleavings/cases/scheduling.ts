// Events with notBefore: numbered when they may be delivered, so their position is a newer version
// than everything that was sent meanwhile.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { step } from './restored.ts'
import { value } from './script.ts'

const ITEM = `create table item (id text primary key, version int not null)`

/** A search engine with external versions: an older version never replaces a newer one. */
function versioned() {
  const held = new Map<string, { position: bigint; version: unknown }>()
  const refused: bigint[] = []
  return {
    held,
    refused,
    put(id: string, position: bigint, payload: unknown) {
      if ((held.get(id)?.position ?? 0n) > position) return void refused.push(position)
      held.set(id, { position, version: (payload as { version: number }).version })
    },
  }
}

export const scheduledVersusNewer = defineCase('scheduled-versus-newer', async ({ db, engine }) => {
  await db.query(ITEM)
  const clock = await engine.testing.fakeClock(db.pool)
  const carried = versioned()
  const loaded = versioned()
  const outbox = engine.createOutbox({ pool: db.pool })
  const common = { revision: 1, types: ['item.*'], from: 'beginning', coalesce: 'latest' } as const
  const sink = (to: ReturnType<typeof versioned>) =>
    engine.testing.memorySink({
      answer: (event) => void to.put(event.aggregateId, event.position, event.payload),
    })
  const load = async () => {
    const rows = await db.query('select id, version from item')
    return new Map(rows.map((row) => [String(row.id), row]))
  }
  outbox.subscribe('carried', { ...common, sink: sink(carried) })
  outbox.subscribe('loaded', { ...common, sink: sink(loaded), load })

  const emit = (version: number, notBefore: string | null) =>
    db.query(
      `with w as (insert into item values ('x', $1) on conflict (id) do update set version = $1)
       select outbox.emit('item.changed', 'item', 'x', json_build_object('version', $1::int), null, $2)`,
      [version, notBefore],
    )
  const due = new Date((await clock.now()).getTime() + 60_000)
  await emit(1, due.toISOString())
  expect(await step(db), 'a scheduled event is not numbered before it is due').toBe(0)
  await emit(2, null)
  await outbox.runOnce({ upkeep: false })
  expect(carried.held.get('x')).toEqual({ position: 1n, version: 2 })

  await clock.advance(61_000)
  await outbox.runOnce({ upkeep: false })
  expect(await value(db, 'select count(*)::int from outbox.scheduled')).toBe(0)
  // Order is not freshness: its payload is from when it was emitted, its position from when it was due.
  expect(carried.held.get('x')).toEqual({ position: 2n, version: 1 })
  expect(loaded.held.get('x'), 'a loaded row is current').toEqual({ position: 2n, version: 2 })
  expect([...carried.refused, ...loaded.refused], 'sent with an older version').toEqual([])
  await holds(db, 'I1', 'I5', 'I8')
  await clock.restore()
})

/** Nobody numbered anything for a month. */
export const longOverdue = defineCase('scheduled: a month overdue', async ({ db, engine }) => {
  const clock = await engine.testing.fakeClock(db.pool)
  await db.query(
    `select outbox.emit('doc.changed', 'doc', 'a', '{}', not_before => outbox.clock() + interval '1 hour')`,
  )
  expect(await value(db, 'select numbered from outbox.sequence()')).toBe(0)
  await clock.advance(30 * 86_400_000)
  expect(await value(db, 'select numbered from outbox.sequence()'), 'numbered when it is due').toBe(1)
})

export const cases = [scheduledVersusNewer, longOverdue]
