// Batches that passed are settled beside the next reads and calls: never too many of them, and never
// on top of one that was refused.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { labels, quiet, stage, WatchedPool } from './stage.ts'

const options = { ...quiet, concurrency: 1 }
const SETTLE = 'outbox.settle('

/** Its lane was taken over: what was gathered behind the refused settle is given up with it. */
export const settleRefused = defineCase('settle: refused while others wait behind it', async (env) => {
  const s = await stage(env)
  const watched = new WatchedPool(s.db.pool)
  const [slow, fast] = [env.engine.testing.memorySink(), env.engine.testing.memorySink()]
  let takenOver = false
  watched.before = async (text) => {
    if (!text.includes(SETTLE)) return
    watched.before = () => {}
    await s.clock.advance(60_000)
    const other = s.outbox(fast)
    await other.runOnce(options)
    await s.change('a')
    await other.runOnce(options)
    await s.change('a')
    takenOver = true
  }
  await s.change('a')
  const worker = await s.outbox(slow, { pool: watched }).start(options)
  await eventually(async () => takenOver && (await s.open()) === 0)
  await worker.stop()
  expect(labels(fast)).toEqual(['a@1', 'a@2'])
  expect(labels(slow).at(-1), 'what nobody else has sent').toBe('a@3')
  expect(labels(slow), 'in order').toEqual([...labels(slow)].sort())
  await holds(s.db, 'I8')
})

/** Nothing is lost when a stop comes while a batch waits for others. */
export const settleOnStop = defineCase('settle: a stop does not forget what waits', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const outbox = s.outbox(sink)
  const worker = await outbox.start(options)
  for (let n = 0; n < 5; n++) {
    const before = sink.accepted.length
    await s.emit(['a', 'b'])
    outbox.wake()
    await eventually(() => sink.accepted.length === before + 2)
  }
  await worker.stop()
  expect(await s.open(), 'delivered and not settled').toBe(0)
})

/** At most two batches are unsettled at any moment, however small and quick they are: so many a crash may repeat. */
export const unsettledAtMost = defineCase('settle: at most two batches are unsettled', async (env) => {
  const s = await stage(env)
  const [count, total] = [20, 2_400]
  const SETTLED = `select coalesce(sum(n.delivered), 0)::int as count from (
    select distinct on (lane) delivered from outbox.cursor order by lane, fence desc, pos desc) n`
  const sink = env.engine.testing.memorySink()
  let unsettled = 0
  const counting: typeof sink = {
    ...sink,
    deliver: async (events, context) => {
      const [settled] = await s.db.query<{ count: number }>(SETTLED)
      const before = sink.accepted.length - (settled?.count ?? 0)
      unsettled = Math.max(unsettled, before + events.length)
      return sink.deliver(events, context)
    },
  }
  const outbox = s.outbox(counting, { subscription: { batch: { count } } })
  const worker = await outbox.start({ ...options, busyPollMs: 50, pollMs: 100 })
  const emitting = async () => {
    for (let n = 0; n < total / 2; n += 2) {
      await s.emit(['a', 'b'])
      outbox.wake()
    }
  }
  await Promise.all([emitting(), emitting()])
  await eventually(() => sink.accepted.length >= total)
  await worker.stop()
  expect(unsettled, 'delivered and not settled').toBeLessThanOrEqual(2 * count)
  expect(sink.accepted).toHaveLength(total)
})
