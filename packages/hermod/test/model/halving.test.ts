// Properties of a delivery on its own: halving isolates exactly the poison, in at most 2n − 1 calls;
// a filter says the same in TypeScript and in SQL.

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { DeliveredEvent } from '../../src/delivered-event.ts'
import { matches } from '../../src/filter.ts'
import { deliver } from '../../src/flow/deliver.ts'
import type { Entry } from '../../src/flow/result.ts'
import { subscriptionOptions } from '../../src/options.ts'
import { rejected, type SinkFunction, split } from '../../src/sinks/sink.ts'

const db = useDatabase()
const seed = Number(process.env.HERMOD_MODEL_SEED ?? Date.now() % 1_000_000_000)

function entries(count: number): Entry[] {
  return Array.from({ length: count }, (_, n) => ({
    lane: 0,
    mark: null,
    attempts: 0,
    gone: false,
    event: new DeliveredEvent({
      id: BigInt(n + 1),
      position: BigInt(n + 1),
      lane: 0,
      type: 'doc.changed',
      version: 1,
      aggregateType: 'doc',
      aggregateId: `d${n}`,
      headersText: null,
      createdAt: 0,
      payloadText: '{}',
      attempt: 1,
    }),
  }))
}

const always = {
  signal: new AbortController().signal,
  deadlineMs: async () => 1_000,
  mine: () => true,
  sending: async () => {},
}

it(`halving isolates exactly the poison in at most 2n - 1 calls (seed ${seed})`, async () => {
  const batches = fc
    .integer({ min: 1, max: 300 })
    .chain((size) =>
      fc.tuple(fc.constant(size), fc.uniqueArray(fc.integer({ min: 0, max: size - 1 }), { maxLength: 8 })),
    )
  await fc.assert(
    fc.asyncProperty(batches, async ([size, bad]) => {
      let calls = 0
      const sent: string[] = []
      const poison = new Set(bad.map((n) => `d${n}`))
      const sink: SinkFunction = async (events) => {
        calls++
        if (events.some(({ aggregateId }) => poison.has(aggregateId)))
          return events.map(() => (events.length > 1 ? split() : rejected()))
        sent.push(...events.map(({ aggregateId }) => aggregateId))
        return undefined
      }
      const subscription = subscriptionOptions('all', {
        revision: 1,
        types: ['*'],
        batch: { count: 5_000 },
        sink,
      })
      const result = await deliver(subscription, entries(size), always)
      const dead = result.entries.filter((entry) => {
        const outcome = result.get(entry)
        return outcome !== 'blocked' && outcome?.outcome === 'rejected'
      })
      expect(dead.map(({ event }) => event.aggregateId).sort()).toEqual([...poison].sort())
      expect(sent.length).toBe(size - poison.size)
      expect(new Set(sent).size).toBe(sent.length)
      expect(calls).toBeLessThanOrEqual(2 * size - 1)
      if (poison.size === 1) expect(calls).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(size)) + 1)
    }),
    { seed, numRuns: 200 },
  )
})

it(`a filter says the same in SQL (seed ${seed})`, async () => {
  const part = fc.stringMatching(/^[a-c_][a-c0-9_]{0,2}$/).map((text) => text.replace(/^[0-9_]/, 'a'))
  const type = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('.'))
  const pattern = fc.oneof(
    fc.constant('*'),
    type,
    type.map((text) => `${text}.*`),
  )
  const questions = fc.array(fc.tuple(fc.array(pattern, { minLength: 1, maxLength: 3 }), type), {
    minLength: 50,
    maxLength: 50,
  })
  await fc.assert(
    fc.asyncProperty(questions, async (asked) => {
      const rows = await db.query<{ says: boolean }>(
        `select outbox.matches(array(select jsonb_array_elements_text(q -> 0)), q ->> 1) as says
           from jsonb_array_elements($1::jsonb) with ordinality as a(q, n) order by n`,
        [JSON.stringify(asked)],
      )
      expect(rows.map(({ says }) => says)).toEqual(asked.map(([patterns, one]) => matches(patterns, one)))
    }),
    { seed, numRuns: 40 },
  )
})
