// Leases: taken over by the database's clock, guarded by their fence, kept by nobody's watch.

import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { auditLanes, holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import type { OutboxEvent } from '../../../src/event.ts'
import { gate, label, labels, quiet, type Stage, stage, versionsOf, WatchedPool } from './stage.ts'

const CLAIM = `select lane, fence::int, pos::int from outbox.claim('all', 1, $1, 16, 45000)`
const RENEW = `select outbox.renew('all', $1, array[$2::smallint], array[$3::bigint], 45000) as lane`

const SETTLE = `select outbox.settle('all', 1, $1, $2::json) as lane`

const COUNTS = { sent: 1, delivered: 1, superseded: 0, failed: 0 }
const CALL = { ago_ms: 0, duration_ms: 0, worker: 'w', outcome: 'delivered' }

function settling(lane: number, fence: number, from: number, to: number): string {
  return JSON.stringify({ settlements: [{ lane, fence, from, to, ...COUNTS }], call: CALL })
}

async function oneLane(env: Env): Promise<{ s: Stage; lane: number }> {
  const s = await stage(env)
  await auditLanes(s.db)
  await s.outbox(env.engine.testing.memorySink()).runOnce(quiet)
  await s.change('a')
  const [row] = await s.db.query<{ lane: number }>('select lane from outbox.log')
  return { s, lane: row?.lane ?? -1 }
}

export const leaseExpiry = defineCase('lease-expiry', async (env) => {
  const { s, lane } = await oneLane(env)
  const [a] = await s.db.query(CLAIM, ['a'])
  expect(a).toEqual({ lane, fence: 1, pos: 0 })
  expect(await s.db.query(CLAIM, ['b']), 'a lane whose lease runs').toEqual([])
  await s.clock.advance(44_000)
  expect(await s.db.query(CLAIM, ['b']), 'a lane whose lease still runs').toEqual([])
  await s.clock.advance(2_000)
  const [b] = await s.db.query(CLAIM, ['b'])
  expect(b, 'after the lease').toEqual({ lane, fence: 2, pos: 0 })
  expect(await s.db.query(RENEW, ['a', lane, 1]), 'a renewal under an old fence').toEqual([])
  expect(await s.db.query(SETTLE, ['a', settling(lane, 1, 0, 1)]), 'a settle under an old fence').toEqual([])
  expect(await s.db.query(SETTLE, ['b', settling(lane, 1, 0, 1)]), 'an old fence, a new owner').toEqual([])
  expect(await s.db.query(SETTLE, ['b', settling(lane, 2, 1, 2)]), 'another starting cursor').toEqual([])
  expect(await s.db.query(SETTLE, ['b', settling(lane, 2, 0, 1)])).toEqual([{ lane }])
  expect(await s.db.query(SETTLE, ['b', settling(lane, 2, 0, 1)]), 'the same settle again').toEqual([])
  await holds(s.db, 'I7', 'I8')
})

/**
 * A renews 2, 5 and 9 while its settle of 2 and 5 runs (B); lane 2 is stored behind the others. P has locked 9. If the
 * renewal took lanes as they are stored, it would have 5 and want 2, and the settle the other way round.
 */
export const oneOrder = defineCase('lane-order: a renewal beside a settle', async (env) => {
  const { s } = await oneLane(env)
  await s.db.query('delete from outbox.lane where lane = 2')
  await s.db.query(`insert into outbox.lane (subscription, lane) values ('all', 2)`)
  await s.bulk(200, `'doc.changed'`, `'d' || n`)
  expect(await s.db.query(CLAIM, ['a'])).toHaveLength(16)
  const [a, b, p] = [await session(s.db, 'a'), await session(s.db, 'b'), await session(s.db, 'p')]
  // As the planner reads them once there are many lanes: in the order they are stored in.
  await a.run('set enable_indexscan = off')
  await p.begin()
  await p.run('select from outbox.lane where lane = 9 for update')
  const renewing = a.start(`select outbox.renew('all', 'a', '{9,5,2}', '{1,1,1}', 45000) as lane`)
  await renewing.blocked(p)
  const moves = [2, 5].map((lane) => ({ lane, fence: 1, from: 0, to: 1, ...COUNTS }))
  const settles = b.start(SETTLE, ['a', JSON.stringify({ settlements: moves, call: CALL })])
  await settles.blocked(a)
  await p.rollback()
  const ends = await Promise.allSettled([renewing.promise, settles.promise])
  expect(
    ends.map(({ status }) => status),
    'one of two that wait for each other',
  ).toEqual(['fulfilled', 'fulfilled'])
})

/** The settle locked the lane first: the take-over passes it by, and starts behind it next time. */
export const settleThenTakeOver = defineCase('lease-expiry: settle first', async (env) => {
  const { s, lane } = await oneLane(env)
  await s.db.query(CLAIM, ['a'])
  await s.clock.advance(46_000)
  const a = await session(s.db, 'a')
  await a.begin()
  expect(await a.run(SETTLE, ['a', settling(lane, 1, 0, 1)])).toEqual([{ lane }])
  expect(await s.db.query(CLAIM, ['b']), 'a lane that is being settled').toEqual([])
  await a.commit()
  await s.change('a')
  const [b] = await s.db.query(CLAIM, ['b'])
  expect(b, 'where the new owner starts').toMatchObject({ lane, fence: 2, pos: 1 })
  await holds(s.db, 'I7')
})

/** The take-over locked the lane first: the settle waits, then finds it is not the owner. */
export const takeOverThenSettle = defineCase('lease-expiry: take-over first', async (env) => {
  const { s, lane } = await oneLane(env)
  await s.db.query(CLAIM, ['a'])
  await s.clock.advance(46_000)
  const [a, b] = [await session(s.db, 'a'), await session(s.db, 'b')]
  await b.begin()
  expect(await b.run(CLAIM, ['b'])).toMatchObject([{ lane, fence: 2, pos: 0 }])
  const late = a.start(SETTLE, ['a', settling(lane, 1, 0, 1)])
  await late.blocked(b)
  await b.commit()
  expect(await late.promise, 'a settle under an old fence').toEqual([])
  await holds(s.db, 'I7')
})

/**
 * A worker is frozen between reading and sending until another has taken over and delivered more.
 * When it wakes it must not send the old batch after the new one.
 */
export const frozenBeforeSend = defineCase('lease-expiry: frozen before the call', async (env) => {
  const s = await stage(env)
  const watched = new WatchedPool(s.db.pool)
  const frozen = gate()
  const [slow, fast] = [env.engine.testing.memorySink(), env.engine.testing.memorySink()]
  watched.after = (text) => (text.includes('outbox.read(') && slow.calls.length === 0 ? frozen.opened : undefined)
  await s.change('a')
  const options = { ...quiet, leaseMs: 1_000, concurrency: 1 }
  const subscription = { callMs: 500 }
  const first = await s.outbox(slow, { pool: watched, subscription }).start(options)
  await eventually(async () => (await s.held(first.id)) === 1)
  // The whole process is frozen.
  watched.before = () => frozen.opened
  await s.clock.advance(60_000)
  const second = s.outbox(fast, { subscription })
  await second.runOnce(options)
  await s.change('a')
  await second.runOnce(options)
  // The newest state may be sent once more: a call of the frozen one could have landed last.
  expect([...new Set(labels(fast))]).toEqual(['a@1', 'a@2'])
  // Only the database's clock was moved; the worker's own one has to come near the lease's end, too.
  await pause(options.leaseMs / 2)
  frozen.open()
  await eventually(async () => (await s.held(first.id)) === 0)
  await first.stop()
  // It may lease the lane again, and send the newest state once more; its own batch is void.
  expect(labels(slow), 'what a frozen owner sent after a take-over').not.toContain('a@1')
  await holds(s.db, 'I8')
})

/** The lease is lost while a call is under way: the call is told, and its result goes nowhere. */
export const lostDuringCall = defineCase('lease-expiry: lost during the call', async (env) => {
  const s = await stage(env)
  await auditLanes(s.db)
  let aborted = false
  const started = gate()
  const lost: string[] = []
  const sink = {
    name: 'memory',
    deliver: async (_: unknown, { signal }: { signal: AbortSignal }) => {
      started.open()
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      aborted = true
      signal.throwIfAborted()
    },
  }
  const listener = { leaseLost: () => lost.push('lost') }
  await s.change('a', 'b')
  const subscription = { callMs: 2_500 }
  const options = { ...quiet, leaseMs: 3_000, concurrency: 1 }
  const worker = await s.outbox(sink as never, { listener, subscription }).start(options)
  await started.opened
  await s.clock.advance(60_000)
  const fast = env.engine.testing.memorySink()
  await s.outbox(fast, { subscription }).runOnce(options)
  expect(labels(fast).sort()).toEqual(['a@1', 'b@1'])
  await eventually(() => aborted, { timeoutMs: 2_000, what: 'the call to be stopped' })
  expect(lost.length).toBeGreaterThan(0)
  await worker.stop()
  expect(await s.rows(), 'rows of the dropped result').toEqual([])
  await holds(s.db, 'I7', 'I8')
})

/** Due times and leases follow the database; the worker's clock is an hour off, and jumps. */
export const wrongClock = defineCase('wrong-clock', async (env) => {
  const s = await stage(env)
  const { retry } = s.say
  const really = Date.now
  let off = 3_600_000
  Date.now = () => {
    off = -off
    return really() + off
  }
  try {
    const sink = env.engine.testing.memorySink({
      answer: (event) => (event.attempt === 1 ? retry() : undefined),
    })
    // So long that a slow machine does not reach it; it comes when the script moves the database's clock.
    const retryMs = 600_000
    const outbox = s.outbox(sink, { subscription: { retry: { baseMs: retryMs, capMs: retryMs, jitter: 0 } } })
    await s.change('a')
    await outbox.runOnce(quiet)
    expect(await s.rows()).toEqual(['a@1 retrying 1'])
    await outbox.runOnce(quiet)
    expect(labels(sink), 'a retry that is not due by the database').toEqual([])
    await s.clock.advance(retryMs)
    await outbox.runOnce(quiet)
    expect(labels(sink), 'a retry that is due by the database').toEqual(['a@1'])
    await s.change('a')
    const { claim } = await env.engine.load<typeof import('../../../src/flow/claim.ts')>('flow/claim.ts')
    const all = { name: 'all', revision: 1 }
    const lanes = await claim(s.db.pool as never, all, 'a', { lanesMax: 16, leaseMs: 45_000, callMs: null })
    expect(lanes.length).toBe(1)
    const [lease] = await s.db.query<{ ms: number }>(
      `select extract(epoch from lease_until - outbox.clock()) * 1000 as ms from outbox.lane where owner = 'a'`,
    )
    expect(Math.abs(Number(lease?.ms) - 45_000), 'a lease by another clock').toBeLessThan(5_000)
    expect(
      await claim(s.db.pool as never, all, 'b', { lanesMax: 16, leaseMs: 45_000, callMs: null }),
      'a lane whose lease runs',
    ).toEqual([])
  } finally {
    Date.now = really
  }
})

/** The answer of a settle is lost: once its COMMIT happened, once it did not. */
export const settleCommitCut = defineCase('settle-commit-cut', async (env) => {
  for (const committed of [true, false]) {
    const s = await stage(env)
    const name = committed ? 'committed' : 'cut'
    const { retry, delivered } = s.say
    const sink = env.engine.testing.memorySink({
      answer: (event) => (label(event) === `${name}@1` && event.attempt === 1 ? retry() : delivered()),
    })
    const watched = new WatchedPool(s.db.pool)
    let cuts = 0
    const cut = (text: string) => {
      if (text.includes('outbox.settle(') && cuts++ === 0)
        throw Object.assign(new Error('Connection terminated unexpectedly'), { code: '08006' })
    }
    if (committed) watched.after = cut
    else watched.before = cut
    const errors: string[] = []
    const listener = { error: ({ during }: { during: string }) => errors.push(during) }
    const position = Number(
      (await s.db.query<{ n: string }>('select coalesce(max(pos), 0)::text as n from outbox.log'))[0]?.n,
    )
    const subscription = { from: { position } }
    await s.change(name, `${name}-b`, name)
    const worker = await s.outbox(sink, { name, pool: watched, subscription, listener }).start(quiet)
    await eventually(async () => (await s.rows(name)).length === 1)
    await eventually(async () => (await s.open(name)) === 0)
    expect((await s.rows(name))[0], `the failed event's row: ${name}`).toBe(`${name}@1 retrying 1`)
    await s.clock.advance(2_000)
    await eventually(() => versionsOf(sink, name).length === 2)
    await eventually(async () => (await s.rows(name)).length === 0)
    await worker.stop()
    expect(errors, 'told once').toEqual(['settle'])
    const sent = sink.accepted.map(label).filter((one) => one.includes('-b'))
    expect(sent.length, `deliveries of b: ${name}`).toBe(committed ? 1 : 2)
  }
})

/** A worker that slept past its lease takes its own lane again: it holds it once, and sends once. */
export const ownLaneAgain = defineCase('lease-expiry: its own lane again', async (env) => {
  const s = await stage(env)
  await auditLanes(s.db)
  const sink = env.engine.testing.memorySink()
  await s.change('a')
  const worker = await s.outbox(sink).start({ ...quiet, concurrency: 1 })
  await eventually(() => sink.accepted.length === 1)
  await s.clock.advance(60_000)
  await s.change('a', 'a')
  await eventually(async () => (await s.open()) === 0)
  await s.change('a')
  await eventually(async () => (await s.open()) === 0)
  await worker.stop()
  expect(versionsOf(sink, 'a'), 'versions sent').toEqual([1, 2, 3, 4])
  await holds(s.db, 'I7', 'I8')
})

/** The answer of a claim is lost: its lanes do not wait for the lease to end. */
export const claimCut = defineCase('claim-answer-cut', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const watched = new WatchedPool(s.db.pool)
  let cuts = 0
  watched.after = (text) => {
    if (text.includes('outbox.claim(') && cuts++ === 0)
      throw Object.assign(new Error('Connection terminated unexpectedly'), { code: '08006' })
  }
  await s.change('a')
  const worker = await s.outbox(sink, { pool: watched }).start({ ...quiet, concurrency: 1 })
  await eventually(() => sink.accepted.length === 1, {
    timeoutMs: 5_000,
    what: 'the lane of a lost claim',
  })
  await worker.stop()
  expect(await s.held(), 'lanes still held').toBe(0)
})

/** A loop in doubt asks which lanes nobody serves, while the answer to its sister's claim is on its way. */
export const sisterClaims = defineCase('claim-under-way: not taken for forgotten', async (env) => {
  const s = await stage(env)
  const [[a], [b]] = [await s.inLane(2, 1), await s.inLane(7, 1)] as [[string], [string]]
  const watched = new WatchedPool(s.db.pool)
  const [out, hold, claimed, owned] = [gate(), gate(), gate(), gate()]
  const sink = env.engine.testing.memorySink()
  const { deliver } = sink
  Object.assign(sink, {
    deliver: async (...call: Parameters<typeof deliver>) => {
      if (label(call[0][0] as never) !== `${a}@1`) return deliver(...call)
      out.open()
      await hold.opened
      return deliver(...call)
    },
  })
  await s.change(a)
  const worker = await s.outbox(sink, { pool: watched }).start({ ...quiet, concurrency: 2 })
  await out.opened
  let [cut, late] = [false, false]
  watched.before = async (text) => {
    if (!text.includes('outbox.settle(') || cut) return
    cut = true
    throw Object.assign(new Error('cut'), { code: 'ECONNRESET' })
  }
  watched.after = async (text) => {
    if (text.includes('outbox.claim(') && !late && (await s.held()) === 2) {
      late = true
      claimed.open()
      await owned.opened
    }
    if (text.includes('from outbox.lane where subscription = $1 and owner = $2')) owned.open()
  }
  await s.change(b)
  await claimed.opened
  hold.open()
  await owned.opened
  await eventually(() => labels(sink).includes(`${b}@1`))
  const lane = await s.db.query('select owner is not null as served, fence::int from outbox.lane where lane = 7')
  expect(lane, 'the lane that the sister claimed').toEqual([{ served: true, fence: 1 }])
  await eventually(async () => (await s.open()) === 0, { what: 'what was cut off to be settled' })
  await worker.stop()
  await holds(s.db, 'I8')
})

/** A note that nobody has done for longer than an integer of milliseconds. */
export const oldNote = defineCase('claim: a second send that is a month late', async (env) => {
  const { s, lane } = await oneLane(env)
  await s.db.query(
    `update outbox.lane set again_at = outbox.clock() - interval '30 days', again_from = 0, again_since = 0 where lane = $1`,
    [lane],
  )
  expect(await s.db.query(CLAIM, ['a'])).toMatchObject([{ lane }])
})

/** A machine that slept: its monotonic clock stood still, so the lease looks valid here and ran out long ago. */
export const sleptMachine = defineCase('lease-expiry: the machine slept', async (env) => {
  const s = await stage(env)
  const [a] = (await s.inLane(5, 1)) as [string]
  const [out, hold] = [gate(), gate()]
  const sent: string[] = []
  const sink = {
    name: 'memory',
    deliver: async (events: readonly OutboxEvent[]) => {
      sent.push(...events.map(label))
      if (sent.length > 1) return
      out.open()
      await hold.opened
    },
  }
  await s.change(a, a)
  const subscription = { batch: { count: 1 } }
  const worker = await s.outbox(sink, { subscription }).start({ ...quiet, concurrency: 1 })
  await out.opened
  // The next batch is read ahead by now, or will be; meanwhile ten minutes go by outside.
  const { now } = Date
  Date.now = () => now() + 600_000
  try {
    await s.clock.advance(600_000)
    await s.db.query(
      `update outbox.lane set owner = 'other', fence = fence + 1, lease_until = outbox.clock() + interval '1 hour'`,
    )
    hold.open()
    await eventually(async () => (await s.held('other')) > 0)
    for (let look = 0; look < 20; look++) await s.change('elsewhere')
    expect(sent, 'sent under a lease that ran out').toEqual([`${a}@1`])
  } finally {
    Date.now = now
    await worker.stop()
  }
})

/**
 * The database's clock was a day ahead and is put right. Leases, the pause of the breaker and retries that lie further in the future than
 * they can are over; scheduled events are not early.
 */
export const clockBack = defineCase('clock-steps-back', async (env) => {
  const s = await stage(env)
  const { retry, unavailable } = s.say
  const day = 24 * 3_600_000
  await s.clock.advance(3 * day)
  let answer = (id: string) => (id === 'a' ? retry() : undefined)
  const sink = env.engine.testing.memorySink({ answer: ({ aggregateId }) => answer(aggregateId) })
  const outbox = s.outbox(sink)
  await s.change('a', 'b')
  await outbox.runOnce(quiet)
  expect(await s.rows()).toEqual(['a@1 retrying 1'])
  answer = () => unavailable({ message: 'away' })
  await s.change('c')
  await outbox.runOnce(quiet)
  await s.db.query(`select outbox.claim('all', 1, 'dead worker', 16, 45000)`)
  await s.clock.advance(-3 * day)
  answer = () => undefined
  await s.db.query(
    `select outbox.emit('doc.changed', 'doc', 'later', '{"v": 1}', not_before => outbox.clock() + interval '1 hour')`,
  )
  const worker = await outbox.start(quiet)
  await eventually(() => labels(sink).length === 3, { what: 'everything that is due to be sent' })
  await worker.stop()
  expect(labels(sink).sort(), 'sent').toEqual(['a@1', 'b@1', 'c@1'])
})
