// One commit of 100,000 events: numbered in pieces, claimed in pages, held in memory never.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import { value } from './script.ts'

const count = 100_000
const batch = 1_000

/** Bytes in use after a collection. */
function heapAfterCollection(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}

export const hugeTransaction = defineCase('huge-transaction', async ({ db, engine }) => {
  const heap: number[] = []
  const seen = new Map<string, number>()
  let largest = 0
  let disorder = 0
  let calls = 0
  const outbox = engine.createOutbox({ pool: db.pool })
  outbox.subscribe('all', {
    revision: 1,
    types: ['*'],
    from: 'beginning',
    batch: { count: batch },
    sink: {
      name: 'counting',
      capabilities: { keepsOrder: true },
      async deliver(events) {
        largest = Math.max(largest, events.length)
        for (const event of events) {
          const { v } = event.payload as { v: number }
          if (v !== (seen.get(event.aggregateId) ?? 0) + 1) disorder++
          seen.set(event.aggregateId, v)
        }
        if (++calls % 25 === 0) heap.push(heapAfterCollection())
      },
    },
  })
  const producer = await session(db, 'producer')
  await producer.begin()
  await producer.run(`insert into outbox.event (type, aggregate_type, aggregate_id, payload, bytes)
    select 'doc.updated', 'doc', 'd' || n % 500, json_build_object('v', n / 500 + 1, 'pad', repeat('x', 100)), 130
      from generate_series(0, ${count} - 1) n`)
  await producer.commit()
  await outbox.runOnce({ deadlineMs: 60_000, upkeep: false })
  const delivered = [...seen.values()].reduce((sum, v) => sum + v, 0)
  expect({ delivered, disorder }).toEqual({ delivered: count, disorder: 0 })
  expect(largest).toBeLessThanOrEqual(batch)
  const growth = Math.max(...heap.slice(1)) - (heap[0] ?? 0)
  expect(growth, `heap after collections: ${heap.join(' ')}`).toBeLessThan(8 * 1024 * 1024)
  expect(await value(db, 'select max(pos)::int from outbox.log')).toBe(count)
  await holds(db, 'I1', 'I3', 'I5', 'I8')
})
