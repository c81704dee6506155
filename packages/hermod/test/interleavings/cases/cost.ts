// What a step costs and promises while others wait: open transactions, idle polls, the flush.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import { buffersOf, emitAlone, logged, STEP, step, value } from './script.ts'

const many = (count: number) =>
  `insert into outbox.event (type, aggregate_type, aggregate_id, payload, bytes)
   select 'doc.updated', 'doc', 'open' || n, '{}', 2 from generate_series(1, ${count}) n`

/** One hour in minutes of the database's clock; at each of them somebody else's event is numbered. */
export const openForAnHour = defineCase('open-for-an-hour', async ({ db, engine }) => {
  const clock = await engine.testing.fakeClock(db.pool)
  const open = await session(db, 'open')
  const producer = await session(db, 'producer')
  const stepper = await session(db, 'stepper')
  await emitAlone(producer, 'warm')
  await step(stepper)
  await open.begin()
  await open.run(many(2_000))
  const read: number[] = []
  for (let minute = 1; minute <= 60; minute++) {
    await clock.advance(60_000)
    await emitAlone(producer, `minute ${minute}`)
    read.push(await buffersOf(stepper, STEP))
    expect(await logged(db), 'events of others').toHaveLength(minute + 1)
  }
  const mean = (numbers: number[]) => numbers.reduce((a, b) => a + b) / numbers.length
  const [early, late] = [mean(read.slice(5, 15)), mean(read.slice(-10))]
  expect(late, `pages per step: ${read.join(' ')}`).toBeLessThan(early * 1.25)
  await open.commit()
  expect(await step(stepper)).toBe(2_000)
  await holds(db, 'I1', 'I5')
})

/** Idle polls within a second may read an open transaction's rows again; later ones must not. */
export const emptyWindowRescan = defineCase('empty-window-rescan', async ({ db, engine }) => {
  const clock = await engine.testing.fakeClock(db.pool)
  const open = await session(db, 'open')
  const other = await session(db, 'other')
  const stepper = await session(db, 'stepper')
  await emitAlone(other, 'warm')
  await step(stepper)
  await open.begin()
  await open.run(many(5_000))
  const poll = async () => {
    await other.run('select pg_current_xact_id()')
    return buffersOf(stepper, STEP)
  }
  const first = await poll()
  await clock.advance(1_500)
  await poll()
  const later = [await poll(), await poll(), await poll()]
  expect(Math.max(...later) * 3, `pages of idle polls: ${first}, later ${later}`).toBeLessThan(first)
  // An idle database: the snapshot is the same, nothing is read and nothing written.
  await stepper.begin()
  await step(stepper)
  expect(await value(stepper, 'select pg_current_xact_id_if_assigned()::text')).toBeNull()
  await stepper.commit()
  await open.commit()
  expect(await step(stepper)).toBe(5_000)
  await holds(db, 'I1', 'I5')
})

/** Whatever a session's own setting says: nobody sees a position that a crash could take back. */
export const flushLsnAfterStep = defineCase('flush-lsn-after-step', async ({ db }) => {
  const producer = await session(db, 'producer')
  const stepper = await session(db, 'stepper')
  for (const each of [producer, stepper]) await each.run('set synchronous_commit = off')
  for (const id of ['a', 'b', 'c']) {
    await emitAlone(producer, id)
    await stepper.begin()
    expect(await step(stepper)).toBe(1)
    const setting = await value(stepper, `select current_setting('synchronous_commit')`)
    expect(setting, 'synchronous_commit of a step').toBe('on')
    const before = await value<string>(stepper, 'select pg_current_wal_insert_lsn()::text')
    await stepper.commit()
    const flushed = 'select pg_current_wal_flush_lsn() > $1::pg_lsn'
    expect(await value(db, flushed, [before]), 'the commit of a step is flushed').toBe(true)
    expect(await value(stepper, `select current_setting('synchronous_commit')`)).toBe('off')
  }
  await holds(db, 'I1', 'I3', 'I5')
})

/** 4,000 kinds, 64 kB of memory and hash joins only: the join works in batches. */
export const littleMemory = defineCase('order-under-little-memory', async ({ db }) => {
  const stepper = await session(db, 'stepper')
  await db.query(`insert into outbox.kind (code, type, aggregate_type)
    select n, 'doc.kind' || n, 'doc' from generate_series(1, 4000) n`)
  await db.query('analyze outbox.kind')
  await db.query(`insert into outbox.event (type, aggregate_type, aggregate_id, payload, bytes)
    select 'doc.kind' || (n * 919) % 4000, 'doc', 'x', '{}', 2 from generate_series(1, 900) n`)
  await stepper.run(`set work_mem = '64kB'; set enable_nestloop = off`)
  // In pieces, so that the next one starts where the order says the first has ended.
  for (let piece = 0; piece < 3; piece++) await stepper.run('select from outbox.sequence(600)')
  await holds(db, 'I1', 'I3', 'I5')
  expect(await logged(db)).toHaveLength(900)
})
