// Case 53: what must not pin a partition, and what may, but never in silence.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { dayMs, emitMany, leafName, rowsIn, setup, tinyLeaves } from './leaves.ts'

const firstLog = leafName('log', 1)
const firstEvent = leafName('event', 1)

export const quietLane = defineCase('quiet-lane-retention', async (env) => {
  const { db, engine } = env
  const { turn, clock, sink, outbox } = await setup(env)
  await tinyLeaves(db)
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  outbox.subscribe('one', { revision: 1, types: ['other.*'], sink, from: 'beginning', lanes: 1 })
  await db.query(`select outbox.emit('document.updated', 'document', 'same', '{}') from generate_series(1, 35)`)
  await engine.testing.drain(outbox)
  const quiet = await db.query(`select from outbox.cursor where subscription = 'all' and pos = 0`)
  expect(quiet.length, 'cursors that never moved').toBe(15)
  await clock.advance(8 * dayMs)
  await turn()
  expect(await rowsIn(db, firstLog), 'a quiet cursor does not hold a leaf').toBe(0)
  expect(await rowsIn(db, firstEvent)).toBe(0)
})

export const receipts = defineCase('receipt-retention', async (env) => {
  const { db, engine } = env
  const { turn, clock, outbox } = await setup(env)
  await tinyLeaves(db)
  const mail = engine.testing.memorySink({ name: 'mail', capabilities: { ledger: true } })
  outbox.subscribe('mail', { revision: 1, types: ['*'], sink: mail, from: 'beginning' })
  await emitMany(db, 35)
  await engine.testing.drain(outbox)
  await clock.advance(8 * dayMs)
  await turn()
  expect(await rowsIn(db, firstEvent), 'receipts do not hold a leaf').toBe(0)
  const rows = `select count(*)::int as kept, count(event)::int as copies from outbox.delivery`
  expect(await db.query(rows), 'and are complete without a copy').toEqual([{ kept: 35, copies: 0 }])
  await clock.advance(23 * dayMs)
  await turn()
  expect(await db.query(rows)).toEqual([{ kept: 0, copies: 0 }])
  const [audit] =
    await db.query(`select sum(count)::int as count, count(distinct request_id)::int = count(*) as distinct
    from outbox.audit where action = 'retention.delivery'`)
  expect(audit, 'every removal is recorded').toEqual({ count: 35, distinct: true })
})

export const forgotten = defineCase('forgotten-subscription', async (env) => {
  const { db, engine } = env
  const { turn, clock, sink, outbox, warnings } = await setup(env)
  await tinyLeaves(db)
  const other = engine.createOutbox({ pool: db.pool })
  other.subscribe('forgotten', {
    revision: 1,
    types: ['*'],
    sink,
    from: 'beginning',
    mode: 'paused',
  })
  await other.runOnce({ upkeep: false })
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  await emitMany(db, 35)
  await outbox.runOnce({ upkeep: false })
  const fresh = await db.query('select subscription, held_bytes::int from outbox.retention_report()')
  expect(fresh, 'nothing is held back yet').toEqual([{ subscription: 'forgotten', held_bytes: 0 }])
  await clock.advance(8 * dayMs)
  await outbox.runOnce({ upkeep: false })
  const { held } = await turn()
  expect(held.get(firstLog)).toBe('unread by forgotten')
  expect(warnings.map(({ code, subscription }) => [code, subscription])).toEqual([['HMD_RETENTION_HELD', 'forgotten']])
  const [report] = await db.query(`select subscription, first_pos::int, held_leaves,
    held_bytes > 100000 as much, since < outbox.clock() - interval '7 days' as old from outbox.retention_report()`)
  expect(report).toEqual({
    subscription: 'forgotten',
    first_pos: 1,
    held_leaves: 8,
    much: true,
    old: true,
  })
  await turn()
  expect(warnings.length, 'told once').toBe(1)
  await db.query(`delete from outbox.subscription where name = 'forgotten'`)
  await turn()
  expect(await rowsIn(db, firstEvent), 'free once the subscription is removed').toBe(0)
})
