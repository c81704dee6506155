// What a large payload costs on disk: TOAST compresses it (lz4 where the server has it, else pglz).

import { expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { createOutbox } from '../../src/index.ts'

const db = useDatabase()

/** About 100 kB: a document with its lines, no two of them alike. */
function largeDocument(seed: number): object {
  let state = seed
  const next = (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state % below
  }
  const line = (_: unknown, number: number) => ({
    number,
    sku: `SKU-${next(1e6)}`,
    quantity: next(500),
    unitPrice: next(1e6) / 100,
    currency: 'EUR',
    description: `Article ${next(1e5)} in size ${next(60)}, packed by ${next(12)}`,
    taxCategory: 'standard',
    updatedAt: new Date(1.7e12 + next(1e9) * 10).toISOString(),
  })
  return { id: seed, lines: Array.from({ length: 510 }, line) }
}

it('a 100 kB JSON payload takes less than 40 kB on disk', async () => {
  const outbox = createOutbox({ pool: db.pool })
  const size = async () =>
    Number(
      (
        await db.query(`select sum(pg_total_relation_size(leaf)) as bytes from outbox.partition where parent = 'event'`)
      )[0]?.bytes,
    )
  const before = await size()
  const count = 40
  for (let n = 1; n <= count; n++) {
    await outbox.transaction((tx) =>
      outbox.emit(tx, { type: 'order.placed', aggregate: ['order', n], payload: largeDocument(n) }),
    )
  }
  const [row] = await db.query<{ bytes: number; stored: number }>(
    'select min(bytes)::int as bytes, max(pg_column_size(payload))::int as stored from outbox.event',
  )
  expect(row?.bytes, 'bytes of JSON').toBeGreaterThan(100_000)
  expect(row?.stored, 'bytes of the stored value').toBeLessThan(40_000)
  expect(((await size()) - before) / count, 'bytes of the table and its indexes, per event').toBeLessThan(40_000)
})

it('every leaf compresses like the table', async () => {
  const rows = await db.query(
    `select count(distinct a.attcompression)::int as kinds from pg_attribute a
      where a.attname = 'payload' and a.attrelid in (select leaf from outbox.partition where parent = 'event' union select 'outbox.event'::regclass)`,
  )
  expect(rows).toEqual([{ kinds: 1 }])
})
