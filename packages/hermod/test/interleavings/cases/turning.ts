// A turn is a step, a settle and a read in one transaction: what one of them refuses must neither be
// taken for granted by the others nor take them down.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { labels, quiet, stage, WatchedPool } from './stage.ts'

const options = { ...quiet, concurrency: 1 }

/** Calls `work` before the first turn that settles something. */
function beforeSettlingTurn(watched: WatchedPool, work: () => Promise<void>): void {
  watched.before = async (text) => {
    if (!text.includes('outbox.turn(') || !text.includes('outbox.settle(')) return
    watched.before = () => {}
    await work()
  }
}

/** The settle is refused: what the same statement read belongs to somebody else. */
export const turnTakenOver = defineCase('turn: taken over before it', async (env) => {
  const s = await stage(env)
  const watched = new WatchedPool(s.db.pool)
  const [slow, fast] = [env.engine.testing.memorySink(), env.engine.testing.memorySink()]
  let takenOver = false
  beforeSettlingTurn(watched, async () => {
    await s.clock.advance(60_000)
    const other = s.outbox(fast)
    await other.runOnce(options)
    await s.change('a')
    await other.runOnce(options)
    await s.change('a')
    takenOver = true
  })
  await s.change('a')
  const worker = await s.outbox(slow, { pool: watched }).start(options)
  await eventually(async () => takenOver && (await s.open()) === 0)
  await worker.stop()
  expect(labels(fast)).toEqual(['a@1', 'a@2'])
  expect(labels(slow), 'what was read beside a refused settle').toEqual(['a@1', 'a@3'])
  await holds(s.db, 'I8')
})

/** Nothing of that transaction happened: the settle goes alone, and nothing is sent twice. */
export const turnStepRefused = defineCase('turn: the step is refused', async (env) => {
  const s = await stage(env)
  const watched = new WatchedPool(s.db.pool)
  const sink = env.engine.testing.memorySink()
  const errors: string[] = []
  const listener = { error: ({ during }: { during: string }) => errors.push(during) }
  await s.change('a')
  const outbox = s.outbox(sink, { pool: watched, listener })
  const worker = await outbox.start(options)
  await eventually(async () => sink.accepted.length === 1 && (await s.open()) === 0)
  let refused = false
  beforeSettlingTurn(watched, async () => {
    // As if this were another cluster's step, and something to number.
    await s.db.query('update outbox.step set system_identifier = 1')
    await s.emit(['c'])
    outbox.wake()
    refused = true
  })
  await s.emit(['b'])
  outbox.wake()
  await eventually(() => labels(sink).length === 2 && refused)
  await eventually(() => errors.length > 0)
  await eventually(async () => (await s.open()) === 0)
  await worker.stop()
  expect(labels(sink), 'sent beside a refused step').toEqual(['a@1', 'b@1'])
  expect(new Set(errors), 'what was told').toEqual(new Set(['step']))
})
