// Destinations that answer with a task: the loop goes on, the outcome comes later, to whoever owns
// the lane by then, and nothing is sent twice that somebody can still ask for.

import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { auditLanes, holds } from '../../../../../test/support/invariants.ts'
import { quiet, type Stage, stage, WatchedPool } from './stage.ts'
import { Tasks } from './tasks.ts'

const oneLoop = { ...quiet, concurrency: 1, stopGraceMs: 3_000 } as const

async function scene(env: Env): Promise<{ s: Stage; tasks: Tasks; ids: string[] }> {
  const s = await stage(env)
  await auditLanes(s.db)
  // Documents of different lanes, in a known order.
  const ids = (await Promise.all([1, 2, 3].map((lane) => s.inLane(lane, 1)))).flat()
  return { s, tasks: new Tasks(), ids }
}

const done = (s: Stage) => eventually(async () => (await s.open()) === 0, { what: 'all settled' })
const sent = (tasks: Tasks, count: number) => eventually(() => tasks.sent.length >= count, { what: `task ${count}` })

const recorded = (s: Stage, count: number) =>
  eventually(async () => {
    const rows = await s.db.query(`select from outbox.lane l, outbox.parked_in('all', l.lane)`)
    return rows.length === count
  })

const states = async (s: Stage): Promise<string[]> => {
  const rows = await s.db.query<{ says: string }>(
    `select e.aggregate_id || '@' || (e.payload ->> 'v') || ' ' || t.state as says
       from outbox.event e join outbox.status t on t.event_id = e.id order by e.id`,
  )
  return rows.map(({ says }) => says)
}

/** A worker that can vanish: from then on none of its statements reaches the database. */
async function mortal(s: Stage, tasks: Tasks) {
  const pool = new WatchedPool(s.db.pool)
  const sink = tasks.sink('a')
  const worker = await s.outbox(sink, { pool }).start({ ...oneLoop, stopGraceMs: 50 })
  const die = () => {
    sink.dead = true
    pool.before = () => {
      throw Object.assign(new Error('the process is dead'), { code: '08006' })
    }
  }
  const bury = async () => {
    die()
    await s.db.query('delete from outbox.worker')
    await s.clock.advance(60_000)
    await worker.stop()
  }
  return { worker, pool, die, bury }
}

export const goesOn = defineCase('parked: the loop goes on', async (env) => {
  const { s, tasks, ids } = await scene(env)
  const [a = '', b = ''] = ids
  const worker = await s.outbox(tasks.sink()).start(oneLoop)
  await s.change(a)
  await sent(tasks, 1)
  await s.change(b)
  await sent(tasks, 2)
  await s.change(a, b)
  await eventually(() => tasks.together('a') === 2, { what: 'one poll for both handles' })
  expect(await states(s)).toEqual([...[`${a}@1 processing`, `${b}@1 processing`, `${a}@2 pending`, `${b}@2 pending`]])
  tasks.end(1)
  await sent(tasks, 3)
  expect(tasks.sent, 'what waits behind a task').toEqual([`${a}@1`, `${b}@1`, `${b}@2`])
  tasks.end(0)
  await sent(tasks, 4)
  tasks.end(2)
  tasks.end(3)
  await done(s)
  await worker.stop()
  expect(tasks.sent).toEqual([`${a}@1`, `${b}@1`, `${b}@2`, `${a}@2`])
  await holds(s.db, 'I1', 'I5', 'I7', 'I8')
})

export const outlastsLease = defineCase('parked: longer than any deadline', async (env) => {
  const { s, tasks, ids } = await scene(env)
  const pool = new WatchedPool(s.db.pool)
  const outbox = s.outbox(tasks.sink(), { pool, subscription: { callMs: 100 } })
  const worker = await outbox.start({ ...oneLoop, leaseMs: 1_000 })
  const other = await s.outbox(tasks.sink('b'), { subscription: { callMs: 100 } })
  await s.change(...ids)
  await sent(tasks, 1)
  await eventually(() => pool.count('outbox.renew(') >= 3, { what: 'three renewals' })
  await other.runOnce({ ...quiet, deadlineMs: 300 })
  expect(tasks.sent.length, 'calls while the task runs').toBe(1)
  tasks.end(0)
  await done(s)
  await worker.stop()
  expect(await s.rows(), 'a long task is no failure').toEqual([])
  expect(tasks.sent.length).toBe(1)
})

export const resumed = defineCase('parked: resumed by the next owner', async (env) => {
  const { s, tasks, ids } = await scene(env)
  const a = await mortal(s, tasks)
  await s.change(...ids)
  await recorded(s, ids.length)
  await a.bury()
  const worker = await s.outbox(tasks.sink('b')).start(oneLoop)
  await s.change(...ids)
  await eventually(() => tasks.asked('b', 0), { what: 'the new owner to ask' })
  expect(await states(s)).toEqual([...ids.map((id) => `${id}@1 processing`), ...ids.map((id) => `${id}@2 pending`)])
  tasks.end(0)
  await sent(tasks, 2)
  tasks.end(1)
  await done(s)
  await worker.stop()
  const later = tasks.sent[1]?.split(' ').sort()
  expect(tasks.sent.length, 'nothing is sent twice').toBe(2)
  expect(later).toEqual(ids.map((id) => `${id}@2`).sort())
  const [row] = await s.db.query<{ n: number }>(
    `select sum(c.delivered)::int as n from outbox.lane l, outbox.cursor_of('all', l.lane) c`,
  )
  expect(row?.n, 'delivered, as counted').toBe(2 * ids.length)
  await holds(s.db, 'I1', 'I5', 'I7', 'I8')
})

export const resumedAndFailed = defineCase('parked: resumed, and the task failed', async (env) => {
  const { s, tasks, ids } = await scene(env)
  const a = await mortal(s, tasks)
  await s.change(...ids)
  await recorded(s, ids.length)
  await a.bury()
  tasks.end(0, s.say.split())
  tasks.judge = (events) =>
    events.length > 1 ? s.say.split() : events[0] === `${ids[1]}@1` ? s.say.rejected() : undefined
  const worker = await s.outbox(tasks.sink('b')).start(oneLoop)
  const single = (id: string | undefined) =>
    eventually(() => {
      const at = tasks.sent.indexOf(`${id}@1`)
      if (at >= 0) tasks.end(at)
      return at >= 0
    })
  await single(ids[0])
  await single(ids[2])
  await done(s)
  await worker.stop()
  expect(await s.rows()).toEqual([`${ids[1]}@1 dead 1`])
  expect(tasks.applied.sort()).toEqual([`${ids[0]}@1`, `${ids[2]}@1`].sort())
})

/** testing.md 48: the range was taken back after the task was recorded. */
export const afterReplay = defineCase('handle-after-replay', async (env) => {
  const { s, tasks, ids } = await scene(env)
  const [id = ''] = ids
  const a = await mortal(s, tasks)
  await s.change(id)
  await recorded(s, 1)
  tasks.end(0)
  await done(s)
  await a.bury()
  // Back to where the task began, as an operator would: under a new fence.
  await s.db.query(
    `with moved as (update outbox.lane set fence = fence + 1 where parked is not null returning lane, fence)
     insert into outbox.cursor (subscription, lane, fence, pos) select 'all', lane, fence, 0 from moved`,
  )
  tasks.judge = () => s.say.delivered()
  await s.outbox(tasks.sink('b')).runOnce({ ...quiet, deadlineMs: 5_000 })
  expect(tasks.sent, 'what was taken back is sent again').toEqual([`${id}@1`, `${id}@1`])
  expect(tasks.asked('b', 0), 'a void handle is asked for').toBe(false)
  expect(await s.open()).toBe(0)
  await holds(s.db, 'I1', 'I5', 'I7', 'I8')
})

export const againBesideParked = defineCase('again-beside-parked', async (env) => {
  const { s, tasks, ids } = await scene(env)
  const [id = ''] = ids
  const a = await mortal(s, tasks)
  await s.change(id)
  await sent(tasks, 1)
  tasks.end(0)
  await done(s)
  await s.change(id)
  await recorded(s, 1)
  await a.bury()
  // Whoever took the lane over gave it back with the second send due, and its task is done meanwhile.
  await s.db.query(
    `update outbox.lane set owner = null, again_at = outbox.clock(), again_from = 0, again_since = 0
      where parked is not null`,
  )
  tasks.end(1)
  tasks.judge = () => s.say.delivered()
  const worker = await s.outbox(tasks.sink('b')).start(oneLoop)
  await eventually(async () => {
    const [row] = await s.db.query<{ n: number }>(
      `select count(*)::int as n from outbox.lane where again_at is not null`,
    )
    return row?.n === 0
  })
  await done(s)
  await worker.stop()
  expect(tasks.sent, 'an older state after a newer one').toEqual([`${id}@1`, `${id}@2`, `${id}@2`])
})

export const movedOn = defineCase('handle-after-replay: the cursor has moved on', async (env) => {
  const { s, tasks, ids } = await scene(env)
  const [id = ''] = ids
  const a = await mortal(s, tasks)
  await s.change(id)
  await recorded(s, 1)
  await a.bury()
  await s.outbox(tasks.sink('b')).mode('all', 'dry-run', { actor: 't', reason: 'r' })
  const by = { actor: 't', reason: 'r', from: 'now' } as const
  await s.outbox(tasks.sink('b')).mode('all', 'live', by)
  await s.change(id)
  tasks.judge = () => s.say.delivered()
  await s.outbox(tasks.sink('b')).runOnce({ ...quiet, deadlineMs: 5_000 })
  expect(tasks.sent).toEqual([`${id}@1`, `${id}@2`])
  expect(tasks.asked('b', 0), 'a void handle is asked for').toBe(false)
})

export const beforeRecord = defineCase('parked: a crash before it is recorded', async (env) => {
  const { s, tasks, ids } = await scene(env)
  const a = await mortal(s, tasks)
  a.pool.before = (text) => {
    if (!text.includes('outbox.park(')) return
    a.die()
    throw new Error('the process is dead')
  }
  await s.change(...ids)
  await sent(tasks, 1)
  await a.bury()
  await s.change(...ids)
  const worker = await s.outbox(tasks.sink('b')).start(oneLoop)
  await sent(tasks, 2)
  tasks.end(0)
  tasks.end(1)
  await done(s)
  await worker.stop()
  for (const id of ids) {
    const list = tasks.applied.filter((name) => name.startsWith(`${id}@`))
    expect(list, `versions of ${id}`).toEqual([`${id}@1`, `${id}@1`, `${id}@2`])
  }
})

export const outcomes = defineCase('parked: split, rejected, retry, unavailable', async (env) => {
  const { s, tasks, ids } = await scene(env)
  const [a = '', b = '', c = ''] = ids
  const bad = new Map([
    [`${b}@1`, [s.say.rejected({ message: 'poison' })]],
    [`${c}@1`, [s.say.retry({ message: 'canceled' }), s.say.unavailable()]],
  ])
  // One word for a whole task: rejected, of which nobody can tell what it was about.
  tasks.judge = (events) => {
    const failed = events.filter((name) => (bad.get(name)?.length ?? 0) > 0)
    if (failed.length === 0) return s.say.delivered()
    return events.length > 1 ? s.say.rejected() : bad.get(failed[0] as string)?.shift()
  }
  const outbox = s.outbox(tasks.sink(), { subscription: { retry: { baseMs: 1_000 } } })
  const worker = await outbox.start(oneLoop)
  await s.change(a, b, c)
  await done(s)
  expect(await s.rows()).toEqual([`${b}@1 dead 1`, `${c}@1 retrying 1`])
  expect(tasks.applied).toEqual([`${a}@1`])
  await s.clock.advance(1_500)
  // Unavailable first: nothing is spent, the destination is held, a probe brings it back.
  await eventually(async () => (await s.rows()).length === 1)
  await worker.stop()
  expect(await s.rows()).toEqual([`${b}@1 dead 1`])
  expect(tasks.applied).toEqual([`${a}@1`, `${c}@1`])
  const held = await s.db.query('select from outbox.subscription where held_cause is not null')
  expect(held).toEqual([])
})

export const pollFails = defineCase('parked: polls fail for a while', async (env) => {
  const { s, tasks, ids } = await scene(env)
  tasks.pollError = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
  const errors: string[] = []
  const listener = { error: ({ during }: { during: string }) => errors.push(during) }
  const outbox = s.outbox(tasks.sink(), { listener, subscription: { callMs: 600 } })
  const worker = await outbox.start(oneLoop)
  await s.change(...ids)
  await eventually(() => tasks.polls.length >= 3)
  const held = () => s.db.query(`select held_cause from outbox.subscription`)
  expect(await held(), 'after a hiccup').toEqual([{ held_cause: null }])
  expect(errors).toEqual(['poll'])
  await eventually(async () => (await held())[0]?.held_cause === 'unavailable')
  tasks.pollError = undefined
  tasks.end(0)
  await done(s)
  await worker.stop()
  expect(tasks.sent.length, 'a failed poll sends nothing again').toBe(1)
  expect(await s.rows()).toEqual([])
})

export const stopping = defineCase('parked: stop gives lanes back with their handles', async (env) => {
  const { s, tasks, ids } = await scene(env)
  const worker = await s.outbox(tasks.sink()).start({ ...oneLoop, stopGraceMs: 20_000 })
  await s.change(...ids)
  await recorded(s, ids.length)
  await worker.stop()
  expect(await s.held(), 'lanes still held').toBe(0)
  tasks.end(0)
  await s.outbox(tasks.sink('b')).runOnce({ ...quiet, deadlineMs: 5_000 })
  expect(await s.open()).toBe(0)
  expect(tasks.sent.length, 'nothing is sent again').toBe(1)
})

/** A part that does not depend on the task alone is on no record: it is waited for, but not for ever. */
export const stoppingUnrecorded = defineCase('parked: stop waits for the grace', async (env) => {
  const { s, tasks, ids } = await scene(env)
  const sink = (by: string) => ({
    ...tasks.sink(by),
    validate: ({ type }: { type: string }) => (type === 'doc.odd' ? 'odd' : undefined),
  })
  const [id = ''] = ids
  const worker = await s.outbox(sink('a')).start({ ...oneLoop, stopGraceMs: 20_000 })
  await s.emit([id], 'doc.odd')
  await s.emit([id])
  await s.step()
  await sent(tasks, 1)
  await recorded(s, 0)
  const stopped = worker.stop()
  tasks.end(0)
  await stopped
  expect(await s.open(), 'what ends within the grace counts').toBe(0)
  const hurried = await s.outbox(sink('b')).start({ ...oneLoop, stopGraceMs: 100 })
  await s.emit([id], 'doc.odd')
  await s.emit([id])
  await s.step()
  await sent(tasks, 2)
  await hurried.stop()
  expect(await s.held(), 'lanes still held').toBe(0)
  tasks.judge = () => s.say.delivered()
  await s.outbox(sink('c')).runOnce({ ...quiet, deadlineMs: 5_000 })
  expect(tasks.sent, 'what nobody can ask for is sent again').toEqual([`${id}@2`, `${id}@4`, `${id}@4`])
  expect(await s.rows()).toEqual([`${id}@1 dead 1`, `${id}@3 dead 1`])
})

export const once = defineCase('parked: runOnce polls until its deadline', async (env) => {
  const { s, tasks, ids } = await scene(env)
  await s.change(...ids)
  await s.outbox(tasks.sink('a')).runOnce({ ...quiet, deadlineMs: 300 })
  expect(await s.held(), 'lanes still held').toBe(0)
  expect(tasks.sent.length).toBe(1)
  await s.outbox(tasks.sink('b')).runOnce({ ...quiet, deadlineMs: 100 })
  const draining = env.engine.testing.drain(s.outbox(tasks.sink('c')))
  await eventually(() => tasks.asked('c', 0))
  tasks.end(0)
  await draining
  expect(await s.open()).toBe(0)
  expect(tasks.sent.length, 'nothing is sent again').toBe(1)
})

export const shared = defineCase('parked: a worker joins', async (env) => {
  const { s, tasks } = await scene(env)
  const ids = (await Promise.all(Array.from({ length: 12 }, (_, n) => s.inLane(n, 1)))).flat()
  const a = await s.outbox(tasks.sink('a')).start(oneLoop)
  await s.change(...ids)
  await recorded(s, ids.length)
  const b = await s.outbox(tasks.sink('b')).start(oneLoop)
  const owners = `select distinct owner from outbox.lane where owner is not null`
  await eventually(async () => (await s.db.query(owners)).length === 2, { what: 'two owners' })
  tasks.end(0)
  await done(s)
  await Promise.all([a.stop(), b.stop()])
  expect(tasks.sent.length, 'nothing is sent again').toBe(1)
  expect(tasks.asked('b', 0), 'the new owner asks').toBe(true)
})

export const paused = defineCase('parked: paused meanwhile', async (env) => {
  const { s, tasks, ids } = await scene(env)
  const [a = '', b = ''] = ids
  const outbox = s.outbox(tasks.sink())
  const worker = await outbox.start(oneLoop)
  await s.change(a)
  await sent(tasks, 1)
  const by = { actor: 't', reason: 'r' }
  await outbox.pause('all', by)
  await s.change(b)
  tasks.end(0)
  await eventually(async () => (await s.open()) === 1, { what: 'the task to count' })
  await outbox.resume('all', by)
  await sent(tasks, 2)
  tasks.end(1)
  await done(s)
  await worker.stop()
  expect(tasks.sent).toEqual([`${a}@1`, `${b}@1`])
})

export const brokenHandles = defineCase('parked: handles that are none', async (env) => {
  const { s, tasks, ids } = await scene(env)
  const [id = ''] = ids
  const parked = { '': 1, ['x'.repeat(2_001)]: 2 }
  for (const handle of Object.keys(parked)) {
    const sink = { ...tasks.sink(), deliver: async () => ({ parked: handle }) }
    await s.change(id)
    await s.outbox(sink).runOnce({ ...quiet, deadlineMs: 5_000 })
  }
  const rows = await s.db.query(`select code, error from outbox.delivery`)
  expect(rows).toEqual([{ code: 'HMD_SINK_BROKEN', error: 'the sink returned a handle it may not return' }])
})
