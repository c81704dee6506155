import { expect, test } from 'vitest'
import { useDatabase } from '../../../test/support/database.ts'
import { createOutbox } from '../src/index.ts'
import { memorySink } from '../src/testing/index.ts'

const db = useDatabase()
test('an event flows', async () => {
  const sink = memorySink()
  const errors: unknown[] = []
  const outbox = createOutbox({
    pool: db.pool,
    listener: {
      error: (e) => {
        errors.push(e)
        console.error(e)
      },
    },
  })
  outbox.subscribe('all', { revision: 1, types: ['*'], sink })
  const worker = await outbox.start()
  for (let i = 0; i < 50; i++)
    await outbox.transaction((tx) =>
      outbox.emit(tx, [
        { type: 'doc.updated', aggregate: ['doc', i % 7], payload: { i } },
        { type: 'doc.read', aggregate: ['doc', i % 7], payload: { i } },
      ]),
    )
  const t0 = performance.now()
  while (sink.accepted.length < 100 && performance.now() - t0 < 5000)
    await new Promise((r) => setTimeout(r, 10))
  console.log('took', performance.now() - t0, sink.calls)
  await worker.stop()
  expect(sink.accepted.length).toBe(100)
  expect(errors).toEqual([])
  const rest = await db.query(
    'select subscription, count(*), max(pos), sum(delivered) from outbox.cursor group by 1',
  )
  console.log(
    rest,
    await db.query('select count(*), sum(delivered) from outbox.attempt'),
    await db.query('select count(*) from outbox.worker'),
  )
})
