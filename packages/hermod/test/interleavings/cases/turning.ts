// A turn is a step, a settle and a read in one transaction: what one of them refuses must neither be
// taken for granted by the others nor take them down.

import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import type { Round } from '../../../src/worker/batch.ts'
import type { Station } from '../../../src/worker/station.ts'
import { labels, quiet, type Stage, stage, WatchedPool } from './stage.ts'

const options = { ...quiet, concurrency: 1 }
/** A step comes along only where more is expected at once: with nothing else to do, the settle goes with a read. */
const patient = { ...options, pollMs: 1_000, busyPollMs: 500 }
/** Longer than a batch may wait to be settled. */
const sinkMs = 40

/** A turn that does all of this. */
const does = (text: string, ...calls: readonly string[]) =>
  ['outbox.turn(', ...calls].every((call) => text.includes(call))

/** Calls `work` before the first turn that does all of this. */
function beforeTurn(watched: WatchedPool, calls: readonly string[], work: () => Promise<void>): void {
  watched.before = async (text) => {
    if (!does(text, ...calls)) return
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
  beforeTurn(watched, ['outbox.settle('], async () => {
    await s.clock.advance(60_000)
    const other = s.outbox(fast)
    await other.runOnce(options)
    await s.change('a')
    await other.runOnce(options)
    await s.change('a')
    takenOver = true
  })
  await s.change('a')
  const worker = await s.outbox(slow, { pool: watched }).start(patient)
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
  const slow: typeof sink = {
    ...sink,
    deliver: async (events, context) => {
      await pause(sinkMs)
      return sink.deliver(events, context)
    },
  }
  const errors: string[] = []
  const listener = { error: ({ during }: { during: string }) => errors.push(during) }
  const outbox = s.outbox(slow, { pool: watched, listener })
  const worker = await outbox.start(options)
  let refused = false
  beforeTurn(watched, ['outbox.settle(', 'outbox.sequence('], async () => {
    // As if this were another cluster's step, and something to number.
    await s.db.query('update outbox.step set system_identifier = 1')
    await s.emit(['c'])
    refused = true
  })
  await eventually(async () => {
    if (!refused) await s.emit(['b'])
    outbox.wake()
    return refused && errors.length > 0 && (await s.open()) === 0
  })
  await worker.stop()
  const sent = labels(sink)
  expect(new Set(sent).size, 'sent beside a refused step').toBe(sent.length)
  expect(sent, 'numbered by a refused step').not.toContain('c@1')
  expect(new Set(errors), 'what was told').toEqual(new Set(['step']))
})

/** Events of a lane go by, until it is known to be read, and what is numbered next is handed over with the step. */
async function untilKnown(s: Stage, watched: WatchedPool, outbox: { wake(): void }, id: string): Promise<void> {
  const from = watched.ended.length
  await eventually(async () => {
    await s.emit([id])
    outbox.wake()
    return watched.ended.slice(from).some((text) => does(text, 'outbox.sequence(', 'known'))
  })
}

/** What the step hands over is not all there is: it must be read. */
export const turnNumberedBetween = defineCase('turn: somebody else has numbered in between', async (env) => {
  const s = await stage(env)
  const [passing, a] = (await s.inLane(0, 2)) as [string, string]
  const watched = new WatchedPool(s.db.pool)
  const sink = env.engine.testing.memorySink()
  const outbox = s.outbox(sink, { pool: watched })
  const worker = await outbox.start(patient)
  await untilKnown(s, watched, outbox, passing)
  let between = false
  beforeTurn(watched, ['outbox.sequence(', 'known'], async () => {
    await s.change(a)
    await s.emit([a])
    between = true
  })
  await eventually(async () => {
    if (!between) await s.emit([passing])
    outbox.wake()
    return between && labels(sink).includes(`${a}@2`)
  })
  await s.step()
  await eventually(async () => (await s.open()) === 0)
  await worker.stop()
  const ours = labels(sink).filter((label) => label.startsWith(`${a}@`))
  expect(ours, 'what somebody else had numbered').toEqual([`${a}@1`, `${a}@2`])
  await holds(s.db, 'I8')
})

/** What the step hands over knows nothing of retries: where there are some, it must be read. */
export const turnBesideRetry = defineCase('turn: an aggregate waits', async (env) => {
  const s = await stage(env)
  const [passing, a] = (await s.inLane(0, 2)) as [string, string]
  const watched = new WatchedPool(s.db.pool)
  const sink = env.engine.testing.memorySink({
    answer: ({ aggregateId }) => (aggregateId === a ? s.say.retry({ afterMs: 3_600_000 }) : undefined),
  })
  const outbox = s.outbox(sink, { pool: watched })
  const worker = await outbox.start(patient)
  await s.emit([a])
  outbox.wake()
  await eventually(async () => (await s.rows()).length === 1)
  sink.answer(() => undefined)
  await untilKnown(s, watched, outbox, passing)
  let emitted = false
  beforeTurn(watched, ['outbox.sequence(', 'known'], async () => {
    await s.emit([a])
    emitted = true
  })
  await eventually(async () => {
    if (!emitted) await s.emit([passing])
    outbox.wake()
    return emitted
  })
  await s.step()
  await eventually(async () => (await s.open()) === 0)
  await worker.stop()
  const ours = labels(sink).filter((label) => label.startsWith(`${a}@`))
  expect(ours, 'sent although an earlier one waits').toEqual([])
})

/** What passed waits for another round only while it is less than a batch. */
export const keptWithinBound = defineCase('turn: less than a batch is kept', async ({ engine }) => {
  const { Settling } = await engine.load<typeof import('../../../src/worker/settling.ts')>('worker/settling.ts')
  const settling = new Settling({ subscription: { batch: { count: 5 } } } as Station)
  const plain = { failed: 0, superseded: 0, rows: [], held: [], done: [], beyond: [] }
  const kept: (number | undefined)[] = []
  for (let from = 0n; kept.length < 4; from += 2n) {
    const lane = { ...plain, lane: 0, fence: 1n, from, to: from + 2n, sent: 2, delivered: 2 }
    const round = { batches: [], startedMs: performance.now() } as unknown as Round
    await settling.add({ round, lanes: [lane], endedMs: performance.now() }, true)
    kept.push(settling.takeDue()?.lanes[0]?.sent)
  }
  expect(kept, 'delivered and not settled').toEqual([undefined, undefined, 6, undefined])
})

/** At most two batches are unsettled at any moment, however small and quick they are: so many a crash may repeat. */
export const unsettledAtMost = defineCase('turn: at most two batches are unsettled', async (env) => {
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
