// Idle subscriptions: they cost no statement of their own, and miss nothing: what another worker left behind, retries
// that come due, a pause that ends. Their cursors move past what they do not listen to.

import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import type { OutboxOptions } from '../../../src/options.ts'
import { label, labels, quiet, type Stage, stage, WatchedPool } from './stage.ts'

/** What a worker says by itself, whatever it serves. */
const itsOwn = /outbox\.(sequence|look|pass_idle|beat|served)\(|listen |pg_notify|journey|outbox\.kind/

/** `count` subscriptions with one lane each, the nth of which listens to `t<n>.*`; who heard what is written down. */
async function many(env: Env, pool: unknown, count: number) {
  const heard: string[] = []
  const outbox = env.engine.createOutbox({ pool, random: () => 0 } as unknown as OutboxOptions)
  outbox.sinkKind('memory', ({ to }) => ({
    name: 'memory',
    deliver: async (events) => void heard.push(...events.map((event) => `${to}: ${label(event)}`)),
  }))
  for (let n = 0; n < count; n++)
    await outbox.subscriptions.create(`hook-${n}`, { kind: 'memory', settings: { to: n }, types: [`t${n}.*`] })
  return { outbox, heard }
}

const position = async (s: Stage, name: string) => {
  const [row] = await s.db.query<{ pos: string }>(`select pos::text from outbox.cursor_of($1, 0::smallint)`, [name])
  return Number(row?.pos)
}

export const manyIdle = defineCase('subscription-at-run-time: 200 of them idle', async (env) => {
  const s = await stage(env)
  const watched = new WatchedPool(s.db.pool)
  const { outbox, heard } = await many(env, watched, 200)
  const worker = await outbox.start({ ...quiet, pollMs: 50 })
  await eventually(async () => {
    const [row] = await s.db.query<{ n: number }>(
      'select coalesce(max(cardinality(subscriptions)), 0) as n from outbox.worker',
    )
    return row?.n === 200
  })
  const looks = async (count: number) => {
    const before = watched.count('outbox.look(')
    await eventually(() => watched.count('outbox.look(') >= before + count, { what: `${count} looks` })
  }
  // Everybody was asked about the backlog by then.
  await looks(2)
  watched.ended.length = 0
  await looks(5)
  const others = () => [...new Set(watched.ended.filter((text) => !itsOwn.test(text)))]
  expect(others(), 'statements beside those of the worker').toEqual([])
  for (const type of ['doc.changed', 'doc.changed', 'other.changed']) {
    await s.emit(['a', 'b'], type)
    await looks(3)
  }
  expect(others(), 'statements for events that nobody listens to').toEqual([])
  await s.emit(['c'], 't7.changed')
  await eventually(() => heard.length === 1)
  expect(heard).toEqual(['7: c@1'])
  expect(watched.count('outbox.claim('), 'claims for one event').toBeLessThanOrEqual(2)
  // It falls asleep again, and hears the next one.
  await eventually(async () => (await s.held()) === 0)
  await looks(3)
  await s.emit(['c'], 't7.changed')
  await eventually(() => heard.length === 2)
  await worker.stop()
  await holds(s.db, 'I1', 'I5')
})

const LEASE = `update outbox.lane set owner = 'x', fence = fence + 1, lease_until = outbox.clock() + interval '10 minutes'
  where subscription = 'hook-1'`
const RELEASE = `update outbox.lane set owner = null, lease_until = '-infinity' where subscription = 'hook-1'`

/** Asleep, because another worker holds the lane; then that one goes without having delivered. */
export const leftBehind = defineCase('idle: what another worker left behind', async (env) => {
  const s = await stage(env)
  const watched = new WatchedPool(s.db.pool)
  const { outbox, heard } = await many(env, watched, 2)
  const worker = await outbox.start({ ...quiet, pollMs: 50 })
  const [claims, looks] = [() => watched.count('outbox.claim('), () => watched.count('outbox.look(')]
  const asleep = async () => {
    const [claimed, looked] = [claims(), looks()]
    await eventually(() => looks() > looked + 3)
    return claims() === claimed
  }
  for (const [index, way] of ['given back', 'expired'].entries()) {
    await s.db.query(LEASE)
    const before = claims()
    await s.emit(['a'], 't1.changed')
    await eventually(() => claims() > before, { what: 'the crew to try' })
    await eventually(asleep, { what: 'the crew to fall asleep' })
    expect(heard, `while the lane is leased, ${way}`).toHaveLength(index)
    if (way === 'expired') await s.clock.advance(700_000)
    else await s.db.query(RELEASE)
    await eventually(() => heard.length === index + 1, { timeoutMs: 5_000, what: `what was ${way} to be delivered` })
    await eventually(async () => (await s.held()) === 0)
  }
  await worker.stop()
  await holds(s.db, 'I1', 'I5')
})

export const dueWhileAsleep = defineCase('idle: a retry comes due, a pause ends', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink({ answer: ({ attempt }) => (attempt === 1 ? s.say.retry() : undefined) })
  const outbox = s.outbox(sink, { subscription: { retry: { baseMs: 4_000, jitter: 0 } } })
  const worker = await outbox.start({ ...quiet, pollMs: 50 })
  await s.change('a')
  await eventually(() => sink.calls.length === 1)
  await eventually(async () => (await s.held()) === 0, { what: 'the lanes to be given back' })
  await eventually(() => labels(sink).length === 1, { what: 'the retry' })
  await outbox.pause('all', { actor: 'test' })
  await s.change('b')
  await eventually(async () => (await s.held()) === 0)
  await outbox.resume('all', { actor: 'test' })
  await eventually(() => sink.calls.length === 3, {
    what: 'what waited for the end of a pause',
  })
  await worker.stop()
})

export const idleCursors = defineCase('idle: cursors pass what nobody there listens to', async (env) => {
  const s = await stage(env)
  const { outbox, heard } = await many(env, s.db.pool, 5)
  const pass = () => s.db.query('select outbox.pass_idle(0, 100000)')
  await outbox.subscriptions.create('all-lanes', {
    kind: 'memory',
    settings: { to: 'all' },
    types: ['t0.*'],
    lanes: 'all',
  })
  await s.change('a', 'b', 'c')
  await s.emit(['d'], 't1.changed')
  await s.emit(['f'], 't2.changed')
  await s.step()
  // Raised meanwhile: what lies before it belongs to the old filter, what comes after it to the new one.
  await outbox.subscriptions.change('hook-2', { types: ['t9.*'] })
  await s.change('e')
  // Leased meanwhile, and locked by somebody.
  await s.db.query(`select * from outbox.claim('hook-3', 1, 'x', 1, 60000)`)
  const locker = await session(s.db, 'locker')
  await locker.begin()
  await locker.run(`select from outbox.lane where subscription = 'hook-4' for update`)
  await pass()
  expect(await position(s, 'hook-0'), 'hears nothing of it').toBe(6)
  expect(await position(s, 'hook-1'), 'has something to deliver').toBe(0)
  expect(await position(s, 'hook-2'), 'its filter was raised in between').toBe(0)
  expect(await position(s, 'hook-3'), 'leased').toBe(0)
  expect(await position(s, 'hook-4'), 'locked').toBe(0)
  const [all] = await s.db.query<{ behind: number }>(
    `select count(*)::int as behind from outbox.lane l cross join lateral outbox.cursor_of(l.subscription, l.lane) c
      where l.subscription = 'all-lanes' and exists (select from outbox.log g where g.lane = l.lane and g.pos > c.pos)`,
  )
  expect(all?.behind, 'lanes of one with many').toBe(0)
  const rows = await s.db.query(`select 1 from outbox.cursor where subscription = 'hook-0'`)
  expect(rows, 'old cursors').toHaveLength(1)
  await locker.commit()
  await s.db.query(`update outbox.lane set owner = null, lease_until = '-infinity'`)
  await outbox.runOnce(quiet)
  expect(heard.sort(), 'nothing was passed that somebody listens to').toEqual(['1: d@1', '2: f@1'])
  await holds(s.db, 'I1', 'I5', 'I8')
})

export const cases = [manyIdle, leftBehind, dueWhileAsleep, idleCursors]
