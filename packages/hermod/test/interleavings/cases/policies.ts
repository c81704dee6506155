// Modes, rates, priorities and filters: what a subscription's policy promises while it is served.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { gate, label, labels, quiet, stage, versionsOf, WatchedPool } from './stage.ts'

const setMode = (mode: string) => `update outbox.subscription set mode = '${mode}' where name = 'all'`

export const pauseAndResume = defineCase('mode: paused and resumed', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const worker = await s.outbox(sink).start(quiet)
  await s.change('a')
  await eventually(() => sink.accepted.length === 1)
  await s.db.query(setMode('paused'))
  await eventually(async () => (await s.held()) === 0, { what: 'lanes to be given back' })
  await s.change('a', 'b')
  expect(await s.db.query(`select * from outbox.claim('all', 1, 'x', 16, 45000)`), 'a claim').toEqual([])
  expect(sink.accepted.length, 'sent while paused').toBe(1)
  await s.db.query(setMode('live'))
  await eventually(() => sink.accepted.length === 3)
  await worker.stop()
  expect(versionsOf(sink, 'a')).toEqual([1, 2])
})

export const dryRun = defineCase('mode: dry-run', async (env) => {
  const s = await stage(env)
  const sink = {
    ...env.engine.testing.memorySink(),
    validate: (event: { aggregateId: string }) => (event.aggregateId === 'bad' ? 'no' : undefined),
  }
  const outbox = s.outbox(sink, { subscription: { mode: 'dry-run' } })
  await s.change('a', 'bad', 'b')
  await outbox.runOnce(quiet)
  await s.change('a')
  await outbox.runOnce(quiet)
  expect(sink.calls, 'calls of a dry run').toEqual([])
  expect(await s.rows(), 'rows of a dry run').toEqual([])
  expect(await s.open(), 'the live cursor').toBe(4)
  const [shadow] = await s.db.query('select max(pos)::int as pos from outbox.shadow')
  expect(shadow?.pos, 'the shadow cursor').toBe(4)
  const [dry] = await s.db.query(
    'select sum(delivered)::int as fine, sum(failed) filter (where pos is null)::int as bad from outbox.attempt where dry_run',
  )
  expect(dry, 'what it would have done').toEqual({ fine: 3, bad: 1 })
  await s.db.query(setMode('live'))
  await outbox.runOnce(quiet)
  expect(labels(sink).sort(), 'sent when live').toEqual(['a@1', 'a@2', 'b@1'])
})

/** Going live while a rehearsed batch is on its way: it must not move the live cursor. */
export const liveMeanwhile = defineCase('mode: live while a dry run settles', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const watched = new WatchedPool(s.db.pool)
  const outbox = s.outbox(sink, { pool: watched, subscription: { mode: 'dry-run' } })
  await s.change('a', 'b')
  let switched = false
  watched.before = async (text) => {
    if (!text.includes('outbox.settle(') || switched) return
    switched = true
    await s.db.query(setMode('live'))
  }
  await outbox.runOnce(quiet)
  await s.outbox(sink).runOnce(quiet)
  expect(switched).toBe(true)
  expect(labels(sink).sort(), 'rehearsed, never sent').toEqual(['a@1', 'b@1'])
})

/** The worker does not know yet: its last heartbeat was before the decision. */
export const dryRunUnheard = defineCase('mode: dry-run before the next heartbeat', async (env) => {
  const s = await stage(env)
  const watched = new WatchedPool(s.db.pool)
  const sink = env.engine.testing.memorySink()
  const worker = await s.outbox(sink, { pool: watched }).start(quiet)
  await s.change('a')
  await eventually(async () => sink.accepted.length === 1 && (await s.open()) === 0)
  const beats = gate()
  const asked = gate()
  watched.before = (text) => (text.includes('outbox.beat(') ? beats.opened : undefined)
  await s.outbox(sink).mode('all', 'dry-run', { actor: 'op', reason: 'to see' })
  await s.change('b')
  watched.after = (text) => (text.includes('outbox.read(') ? asked.open() : undefined)
  await asked.opened
  beats.open()
  const rehearsed = () => s.db.query('select from outbox.attempt where dry_run')
  await eventually(async () => (await rehearsed()).length > 0)
  await worker.stop()
  expect(labels(sink), 'really sent').toEqual(['a@1'])
})

export const ledgerDryRun = defineCase('mode: dry-run of a ledger', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink({ capabilities: { ledger: true } })
  const outbox = s.outbox(sink, { subscription: { mode: 'dry-run' } })
  await s.change('a', 'b')
  await outbox.runOnce(quiet)
  expect([sink.calls, await s.rows()], 'calls and rows of a dry run').toEqual([[], []])
  const [shadow] = await s.db.query('select max(pos)::int as pos from outbox.shadow')
  expect(shadow?.pos, 'the shadow cursor').toBe(2)
  await s.db.query(setMode('live'))
  await outbox.runOnce(quiet)
  expect(labels(sink).sort()).toEqual(['a@1', 'b@1'])
})

export const singleLane = defineCase('lanes: 1', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const ids = Array.from({ length: 40 }, (_, n) => `d${n % 13}`)
  await s.change(...ids)
  await s.emit(ids, 'note.changed')
  await s.change(...ids)
  const outbox = s.outbox(sink, {
    subscription: { lanes: 1, types: ['doc.*'], batch: { count: 7 } },
  })
  await outbox.runOnce(quiet)
  const positions = sink.accepted.map(({ position }) => position)
  expect(positions.length).toBe(80)
  expect(
    [...positions].sort((a, b) => Number(a - b)),
    'read by position',
  ).toEqual(positions)
  expect(new Set(sink.accepted.map(({ type }) => type))).toEqual(new Set(['doc.changed']))
  await holds(s.db, 'I8')
})

/** Positions jump at a new epoch; a filter raised after it must not swallow what lies between. */
export const singleLaneEpoch = defineCase('lanes: 1 across an epoch', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const subscription = { lanes: 1, types: ['doc.*'] } as const
  await s.outbox(sink, { subscription }).runOnce(quiet)
  await s.change('a')
  await s.db.query('update outbox.step set timeline = timeline - 1')
  await s.change('b', 'c')
  const raised = s.outbox(sink, { subscription: { ...subscription, types: ['*'], revision: 2 } })
  await s.emit(['d'], 'note.changed')
  await raised.runOnce(quiet)
  await s.step()
  await raised.runOnce(quiet)
  expect(labels(sink), 'across the epoch').toEqual(['a@1', 'b@1', 'c@1', 'd@1'])
})

export const raisedFilter = defineCase('revision: a new filter holds from its position', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  await s.outbox(sink, { subscription: { types: ['doc.*'] } }).runOnce(quiet)
  await s.emit(['before'], 'note.changed')
  await s.change('before')
  const raised = s.outbox(sink, { subscription: { types: ['note.*'], revision: 2 } })
  await raised.runOnce(quiet)
  await s.emit(['after'], 'note.changed')
  await s.change('after')
  await raised.runOnce(quiet)
  const heard = sink.accepted.map((event) => `${event.type} ${event.aggregateId}`)
  expect(heard, 'each position by its own filter').toEqual(['doc.changed before', 'note.changed after'])
  const conflict = s.outbox(sink, { subscription: { types: ['*'], revision: 2 } }).runOnce(quiet)
  await expect(conflict).rejects.toMatchObject({ code: 'HMD_SUBSCRIPTION_CONFLICT' })
})

export const priority = defineCase('priority', async (env) => {
  const s = await stage(env)
  const [drafts, published] = [env.engine.testing.memorySink(), env.engine.testing.memorySink()]
  await s.bulk(50_000, `'draft.saved'`, `'d' || n % 500`)
  const outbox = s
    .outbox(drafts, { name: 'drafts', subscription: { types: ['draft.*'], priority: 0 } })
    .subscribe('published', {
      revision: 1,
      types: ['doc.*'],
      sink: published,
      priority: 10,
      from: 'beginning',
    })
  const worker = await outbox.start(quiet)
  await eventually(() => drafts.accepted.length > 500)
  const startedMs = performance.now()
  await s.emit(['now'])
  outbox.wake()
  await eventually(() => published.accepted.length === 1)
  expect(performance.now() - startedMs, 'a published document behind drafts').toBeLessThan(1_000)
  expect(drafts.accepted.length, 'drafts still wait').toBeLessThan(50_000)
  await worker.stop()
})

export const deadline = defineCase('runOnce: its deadline', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const slow = {
    ...sink,
    deliver: async (...args: Parameters<typeof sink.deliver>) => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      return sink.deliver(...args)
    },
  }
  await s.bulk(5_000, `'doc.changed'`, `'d' || n % 500`)
  const startedMs = performance.now()
  const outbox = s.outbox(slow, { subscription: { batch: { count: 10 } } })
  await outbox.runOnce({ ...quiet, deadlineMs: 400 })
  expect(performance.now() - startedMs, 'it ends in time').toBeLessThan(3_000)
  expect(sink.accepted.length).toBeGreaterThan(0)
  expect(sink.accepted.length).toBeLessThan(5_000)
  expect(await s.held(), 'lanes still held').toBe(0)
  expect(await s.open(), 'what arrived is settled').toBe(5_000 - sink.accepted.length)
})

/** Lanes that several loops tried for at once are served in the same run. */
export const onceThrough = defineCase('runOnce: once through everything', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const outbox = s.outbox(sink)
  for (let round = 1; round <= 5; round++) {
    await s.bulk(200, `'doc.changed'`, `'d' || n`)
    await outbox.runOnce(quiet)
    expect(await s.open(), `left behind in round ${round}`).toBe(0)
  }
  expect(sink.accepted.length).toBe(1_000)
})

export const noListen = defineCase('polling alone is enough', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const worker = await s.outbox(sink).start({ ...quiet, listen: false })
  for (let n = 0; n < 5; n++) {
    await s.emit(['a'])
    await eventually(() => sink.accepted.length === n + 1)
  }
  await worker.stop()
  expect(sink.accepted.map(label).at(-1)).toBe('a@5')
})
