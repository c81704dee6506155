// The next batch is read while one is sent and another is settled: what was read too early must
// neither overtake a failure nor get stuck behind one that is over.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { gate, label, labels, quiet, stage, versionsOf, WatchedPool } from './stage.ts'

const one = { ...quiet, concurrency: 1 }
const READ = 'outbox.read('
const SETTLE = 'outbox.settle('

export const arrivesWhileDraining = defineCase('arrives-while-draining', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink({
    answer: (event) => (label(event) === 'a@1' && event.attempt === 1 ? s.say.retry() : undefined),
  })
  const watched = new WatchedPool(s.db.pool)
  const outbox = s.outbox(sink, { pool: watched })
  await s.change('a')
  await outbox.runOnce(one)
  await s.clock.advance(1_100)
  // The row is read and sent; before its settle, the next event of the aggregate is numbered.
  watched.before = async (text) => {
    if (!text.includes(SETTLE) || versionsOf(sink, 'a').length !== 1) return
    watched.before = () => {}
    await s.change('a')
  }
  await outbox.runOnce(one)
  expect(versionsOf(sink, 'a'), 'an event that arrives while the row goes').toEqual([1, 2])
  expect(await s.rows(), 'rows that got stuck').toEqual([])
  await holds(s.db, 'I8')
})

/** Passed over as held in a batch read ahead, while the row it waited for goes. */
export const readAheadWhileDraining = defineCase('arrives-while-draining: read ahead', async (env) => {
  const s = await stage(env)
  const [a, b] = (await s.inLane(2, 2)) as [string, string]
  const sink = env.engine.testing.memorySink({
    answer: (event) => (label(event) === `${a}@1` && event.attempt === 1 ? s.say.retry() : undefined),
  })
  const watched = new WatchedPool(s.db.pool)
  const outbox = s.outbox(sink, { pool: watched, subscription: { batch: { count: 2 } } })
  await s.change(a)
  await outbox.runOnce(one)
  await s.change(b, b, b)
  await s.change(a)
  await s.change(b, b)
  await s.clock.advance(1_100)
  // Settles are as late as they can be: each waits until the read that overlaps it has ended.
  watched.before = async (text) => {
    if (!text.includes(SETTLE)) return
    const reads = watched.count(READ)
    await eventually(() => watched.count(READ) > reads, { timeoutMs: 300 }).catch(() => {})
  }
  await outbox.runOnce(one)
  expect(versionsOf(sink, a), 'the aggregate that drained').toEqual([1, 2])
  expect(versionsOf(sink, b)).toEqual([1, 2, 3, 4, 5])
  expect(await s.rows(), 'rows that got stuck').toEqual([])
  await holds(s.db, 'I8')
})

/** a@1 fails while a@2 is read ahead: a@2 is read again, as one that waits. */
export const followerReadAhead = defineCase('hold-one-aggregate: a follower read ahead', async (env) => {
  const s = await stage(env)
  const sent: string[] = []
  const secondRead = gate()
  const sink = env.engine.testing.memorySink({
    answer: (event) => {
      sent.push(label(event))
      return label(event) === 'a@1' && event.attempt === 1 ? s.say.retry() : undefined
    },
  })
  const held = {
    ...sink,
    deliver: async (...args: Parameters<typeof sink.deliver>) => {
      if (sent.length === 0) await secondRead.opened
      return sink.deliver(...args)
    },
  }
  const watched = new WatchedPool(s.db.pool)
  let reads = 0
  watched.after = (text) => {
    if (text.includes(READ) && ++reads === 2) secondRead.open()
  }
  await s.change('a', 'a', 'a')
  const outbox = s.outbox(held, { pool: watched, subscription: { batch: { count: 1 } } })
  await outbox.runOnce(one)
  expect(sent, 'a follower that was read ahead').toEqual(['a@1'])
  await s.clock.advance(1_100)
  await outbox.runOnce(one)
  expect(versionsOf(sink, 'a')).toEqual([1, 2, 3])
  await holds(s.db, 'I8')
})

/** A row that is sent again is not sent once more by the batch that was read meanwhile. */
export const dueTwice = defineCase('hold-one-aggregate: a due row in two reads', async (env) => {
  const s = await stage(env)
  const ids = await s.inLane(2, 9)
  const [a, ...others] = ids as [string, ...string[]]
  let attempts = 0
  const sink = env.engine.testing.memorySink({
    answer: (event) => {
      if (event.aggregateId !== a) return undefined
      attempts++
      return s.say.retry()
    },
  })
  const watched = new WatchedPool(s.db.pool)
  const outbox = s.outbox(sink, { pool: watched, subscription: { batch: { count: 2 } } })
  await s.change(a)
  await outbox.runOnce(one)
  await s.change(...others)
  await s.clock.advance(1_100)
  watched.before = async (text) => {
    if (!text.includes(SETTLE)) return
    const reads = watched.count(READ)
    await eventually(() => watched.count(READ) > reads, { timeoutMs: 300 }).catch(() => {})
  }
  await outbox.runOnce(one)
  expect(attempts, 'attempts at the row').toBe(2)
  expect(await s.rows()).toEqual([`${a}@1 retrying 2`])
})

/** While a lane is held, the third attempt comes when it is due, not when the lane changes hands. */
export const retryWhileHeld = defineCase('hold-one-aggregate: every retry in time', async (env) => {
  const s = await stage(env)
  const attempts: number[] = []
  const sink = env.engine.testing.memorySink({
    answer: (event) => {
      attempts.push(event.attempt)
      return event.attempt < 4 ? s.say.retry() : undefined
    },
  })
  await s.change('a')
  const worker = await s.outbox(sink).start(one)
  await eventually(() => attempts.length === 1)
  for (const waitMs of [1_000, 2_000, 4_000]) {
    const count = attempts.length
    await eventually(async () => (await s.rows())[0] === `a@1 retrying ${count}`)
    await s.clock.advance(waitMs)
    await eventually(() => attempts.length > count, { timeoutMs: 1_500, what: 'the next attempt' })
  }
  await worker.stop()
  expect(attempts).toEqual([1, 2, 3, 4])
  expect(labels(sink)).toEqual(['a@1'])
})

/** Delivered behind one that was unavailable: known, and not sent again while the lane is held. */
export const beyondTheCursor = defineCase('outage: delivered beyond the cursor', async (env) => {
  const s = await stage(env)
  const [a, b] = (await s.inLane(2, 2)) as [string, string]
  let away = true
  const sink = env.engine.testing.memorySink({
    answer: (event) => (away && event.aggregateId === a ? s.say.unavailable() : undefined),
  })
  await s.change(a, b)
  const worker = await s.outbox(sink).start(one)
  await eventually(() => labels(sink).includes(`${b}@1`))
  await eventually(async () => (await s.db.query('select 1 from outbox.subscription where held_count > 1')).length > 0)
  away = false
  await s.clock.advance(6_000)
  await eventually(() => labels(sink).includes(`${a}@1`))
  await eventually(async () => (await s.open()) === 0)
  await worker.stop()
  expect(labels(sink).sort(), 'sent again although it was delivered').toEqual([`${a}@1`, `${b}@1`].sort())
})

/** A large batch with a failure is settled before the next read, under runOnce too: a@2 is numbered while a@1 is out. */
export const onceLargeBatch = defineCase('runonce-large-batch', async (env) => {
  const s = await stage(env)
  const seen: string[] = []
  const sink = env.engine.testing.memorySink({
    answer: (event) => {
      if (event.aggregateId !== 'a') return undefined
      seen.push(label(event))
      return label(event) === 'a@1' && event.attempt === 1 ? s.say.retry() : undefined
    },
  })
  const numbering = {
    ...sink,
    deliver: async (...args: Parameters<typeof sink.deliver>) => {
      if (args[0].length > 500) await s.change('a')
      return sink.deliver(...args)
    },
  }
  await s.change('a', ...Array.from({ length: 900 }, (_, n) => `x${n}`))
  const outbox = s.outbox(numbering, { subscription: { batch: { count: 5_000 } } })
  await outbox.runOnce(one)
  expect(seen, 'a follower that overtakes').toEqual(['a@1'])
  await s.clock.advance(1_100)
  await outbox.runOnce(one)
  expect(seen).toEqual(['a@1', 'a@1', 'a@2'])
})
