// Replay: sent again under live edits, filters, failures and take-overs; the newest state comes last.

import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { auditLanes, holds } from '../../../../../test/support/invariants.ts'
import type { ReplayOptions } from '../../../src/index.ts'
import { gate, label, labels, quiet, type Stage, stage, versionsOf, WatchedPool } from './stage.ts'
import { Tasks } from './tasks.ts'

const BY = { actor: 'ada', reason: 'the index was lost' }
type Outbox = ReturnType<Stage['outbox']>

/** Two documents of one lane, each changed twice and delivered. */
async function delivered(env: Env, subscription: object = {}, name = 'all') {
  const s = await stage(env)
  await auditLanes(s.db)
  const sink = env.engine.testing.memorySink()
  const outbox = s.outbox(sink, { subscription, name })
  const [a, b] = (await s.inLane(5, 2)) as [string, string]
  await s.change(a)
  await s.change(b)
  await s.change(a)
  await outbox.runOnce(quiet)
  sink.clear()
  return { s, sink, outbox, a, b }
}

const replay = (outbox: Outbox, options: Partial<ReplayOptions> = {}, name = 'all') =>
  outbox.journeys.replay(name, { from: 1n, ...BY, ...options })

/** Runs it to its end. */
async function whole(outbox: Outbox, options: Partial<ReplayOptions> = {}, name = 'all') {
  const { id } = await replay(outbox, options, name)
  await outbox.runOnce(quiet)
  return outbox.journeys.show(id)
}

export const inOrder = defineCase('replay-against-live: in order, counted first', async (env) => {
  const { s, sink, outbox, a, b } = await delivered(env)
  expect(await outbox.journeys.plan('all', { from: 1n })).toMatchObject({ matching: 3, sending: 3 })
  const done = await whole(outbox)
  expect(done).toMatchObject({ state: 'succeeded', result: { sent: 3, superseded: 0, failed: 0 } })
  expect(labels(sink)).toEqual([`${a}@1`, `${b}@1`, `${a}@2`])
  await holds(s.db, 'I7', 'I8')
  const left = await s.db.query(
    'select (select count(*) from outbox.replay)::int as r, (select count(*) from outbox.keep)::int as k',
  )
  expect(left, 'what a finished replay leaves').toEqual([{ r: 0, k: 0 }])
})

/** A slice is out when the document changes: the live event waits for it, and is sent after it. */
export const liveMeanwhile = defineCase('replay-against-live: a live edit meanwhile', async (env) => {
  const { s, sink, outbox, a } = await delivered(env, { batch: { count: 1 } })
  const out = gate()
  const hold = gate()
  const { deliver } = sink
  Object.assign(sink, {
    deliver: async (...call: Parameters<typeof deliver>) => {
      const answer = await deliver(...call)
      if (label(call[0][0] as never) !== `${a}@1`) return answer
      out.open()
      await hold.opened
      return answer
    },
  })
  await replay(outbox)
  const worker = await outbox.start({ ...quiet, concurrency: 1 })
  await out.opened
  expect(versionsOf(sink, a)).toEqual([1])
  const [other] = (await s.inLane(7, 1)) as [string]
  await s.change(a)
  // Other lanes go on, this one waits.
  for (const version of [1, 2, 3]) {
    await s.change(other)
    await eventually(() => versionsOf(sink, other).includes(version))
  }
  expect(versionsOf(sink, a), 'what was sent while a slice was out').toEqual([1])
  hold.open()
  await eventually(async () => (await s.open()) === 0)
  const [journey] = await outbox.journeys.list()
  await outbox.journeys.wait(journey?.id as bigint)
  await worker.stop()
  const versions = versionsOf(sink, a)
  expect(versions.at(-1), `the last thing sent: ${versions}`).toBe(3)
  // Without coalescing what was delivered meanwhile is sent again too: the cursors have to meet.
  expect(versions.filter((v) => v === 2)).toHaveLength(1)
  await holds(s.db, 'I7', 'I8')
})

/** With coalescing an old version must not go out once a newer one has. */
export const endsNewest = defineCase('replay-ends-newest', async (env) => {
  const { s, sink, outbox, a, b } = await delivered(env, { coalesce: 'latest' })
  expect(await outbox.journeys.plan('all', { from: 1n })).toMatchObject({ matching: 3, sending: 2 })
  const { id } = await replay(outbox)
  const watched = new WatchedPool(s.db.pool)
  const second = s.outbox(sink, { subscription: { coalesce: 'latest' }, pool: watched })
  // Between the look at the log and the slice a newer version of one document is delivered.
  watched.after = async (text) => {
    if (!text.includes('outbox.replay_window(') || watched.count('outbox.settle(') > 0) return
    await s.change(a)
    await eventually(() => versionsOf(sink, a).includes(3))
  }
  const worker = await second.start({ ...quiet, concurrency: 1 })
  expect(await second.journeys.wait(id)).toMatchObject({ state: 'succeeded' })
  await worker.stop()
  expect(versionsOf(sink, a), 'the replay must not bring an old version back').toEqual([3])
  expect(versionsOf(sink, b)).toEqual([1])
  await holds(s.db, 'I7', 'I8')
})

/** The filter names updates only; the deletion after them still counts. */
export const overDelete = defineCase('replay-over-delete', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const outbox = s.outbox(sink, { subscription: { coalesce: 'latest' } })
  const [a, b] = (await s.inLane(5, 2)) as [string, string]
  await s.emit([a, b], 'doc.updated')
  await s.emit([a], 'doc.deleted')
  await s.step()
  await outbox.runOnce(quiet)
  sink.clear()
  const options = { types: ['doc.updated'] }
  expect(await outbox.journeys.plan('all', { from: 1n, ...options })).toMatchObject({
    matching: 2,
    sending: 1,
  })
  await whole(outbox, options)
  expect(labels(sink), 'what was deleted must not come back').toEqual([`${b}@1`])
})

/** Two aggregates of one hash: neither hides the other. */
export const sameHash = defineCase('replay-ends-newest: two documents of one hash', async (env) => {
  const { s, sink, outbox, a, b } = await delivered(env, { coalesce: 'latest' })
  await s.db.query(
    `update outbox.log set hash = outbox.hash('doc', $1) where event_id in (select id from outbox.event where aggregate_id = $2)`,
    [a, b],
  )
  await whole(outbox)
  expect(labels(sink).sort()).toEqual([`${a}@2`, `${b}@1`].sort())
})

/** The slice is delivered when its owner is frozen; another takes over and goes on from the same place. */
export const formerOwner = defineCase('replay-against-live: a former owner is refused', async (env) => {
  const { s, sink, outbox, a } = await delivered(env, { callMs: 500 })
  const watched = new WatchedPool(s.db.pool)
  const late = gate()
  const frozen = gate()
  let answered: unknown
  watched.before = async (text) => {
    if (!text.includes('outbox.settle_replay(') || answered !== undefined) return
    answered = false
    late.open()
    await frozen.opened
  }
  const { id } = await replay(outbox)
  const slow = s.outbox(sink, { pool: watched, subscription: { callMs: 500 } })
  const first = await slow.start({ ...quiet, leaseMs: 1_000, concurrency: 1 })
  await late.opened
  // The whole process is frozen.
  watched.before = () => frozen.opened
  await s.clock.advance(60_000)
  const second = s.outbox(sink, { subscription: { callMs: 500 } })
  const worker = await second.start({ ...quiet, concurrency: 1 })
  expect(await second.journeys.wait(id)).toMatchObject({ state: 'succeeded' })
  await s.change(a)
  await eventually(async () => (await s.open()) === 0)
  frozen.open()
  await first.stop()
  await worker.stop()
  const versions = versionsOf(sink, a)
  expect(versions.at(-1), `${versions}`).toBe(3)
  const [row] = await s.db.query('select count(*)::int as n from outbox.replay')
  expect(row?.n, 'a late settle moved a replay').toBe(0)
  await holds(s.db, 'I7', 'I8')
})

/** Rows in the range: what waits is taken over, what was dead is closed by the replay. */
export const absorbs = defineCase('replay-absorbs-rows', async (env) => {
  const s = await stage(env)
  await auditLanes(s.db)
  const sink = env.engine.testing.memorySink()
  const outbox = s.outbox(sink, {
    subscription: { retry: { baseMs: 3_600_000, capMs: 3_600_000 } },
  })
  const [a, b] = (await s.inLane(5, 2)) as [string, string]
  sink.answer(({ aggregateId, payload }) => {
    const { v } = payload as { v: number }
    if (aggregateId === a && v === 2) return s.say.retry()
    return aggregateId === b && v === 1 ? s.say.rejected() : undefined
  })
  await s.change(a, b)
  await s.change(a, b)
  await s.change(a, b)
  await outbox.runOnce(quiet)
  expect(await s.rows()).toEqual([`${b}@1 dead 1`, `${a}@2 retrying 1`])
  sink.answer(undefined)
  sink.clear()
  expect(await whole(outbox)).toMatchObject({ state: 'succeeded' })
  await outbox.runOnce(quiet)
  expect(await s.rows(), 'rows after the replay').toEqual([])
  expect([a, b].map((id) => versionsOf(sink, id).at(-1))).toEqual([3, 3])
  expect(versionsOf(sink, a).slice(0, 3)).toEqual([1, 2, 3])
  await holds(s.db, 'I7', 'I8')
})

/** What fails inside a replay is an ordinary row: its followers wait, others go on. */
export const failsInside = defineCase('replay-fails-inside', async (env) => {
  const { s, sink, outbox, a, b } = await delivered(env, { retry: { baseMs: 1, jitter: 0 } })
  let fails = 2
  sink.answer(({ aggregateId }) => (aggregateId === a && fails-- > 0 ? s.say.retry() : undefined))
  const { id } = await replay(outbox)
  const worker = await outbox.start({ ...quiet, concurrency: 1 })
  expect(await outbox.journeys.wait(id)).toMatchObject({
    state: 'succeeded',
    result: { failed: 1 },
  })
  await eventually(async () => (await s.rows()).length === 0)
  await worker.stop()
  expect(versionsOf(sink, a)).toEqual([1, 2])
  expect(versionsOf(sink, b)).toEqual([1])
  await holds(s.db, 'I7', 'I8')
})

/** The destination is away: nothing is spent, the replay waits with everything else. */
export const outage = defineCase('replay-waits-for-the-destination', async (env) => {
  const { s, sink, outbox, a } = await delivered(env, { coalesce: 'latest' })
  let away = true
  sink.answer(() => (away ? s.say.unavailable({ message: 'down' }) : undefined))
  const { id } = await replay(outbox)
  const worker = await outbox.start({ ...quiet, concurrency: 1 })
  await eventually(async () => (await outbox.journeys.show(id))?.progress.waiting === 'unavailable')
  expect(await s.rows(), 'attempts spent on an outage').toEqual([])
  away = false
  await s.clock.advance(60_000)
  expect(await outbox.journeys.wait(id)).toMatchObject({ state: 'succeeded' })
  await worker.stop()
  expect(versionsOf(sink, a)).toEqual([2])
})

export const mailSkipped = defineCase('replay-against-live: mail is asked for by name', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink({ capabilities: { ledger: true } })
  const outbox = s.outbox(sink, { name: 'mail' })
  await s.change('a')
  await s.change('b')
  await outbox.runOnce(quiet)
  expect(labels(sink).sort()).toEqual(['a@1', 'b@1'])
  await expect(replay(outbox, {}, 'mail')).rejects.toMatchObject({ code: 'HMD_REPLAY_LEDGER' })
  const done = await whole(outbox, { confirm: 'mail', aggregate: ['doc', 'a'] }, 'mail')
  expect(done).toMatchObject({ state: 'succeeded', result: { sent: 1 } })
  await outbox.runOnce(quiet)
  expect(labels(sink).sort()).toEqual(['a@1', 'a@1', 'b@1'])
})

const CLAIM = `select lane, fence::int from outbox.claim('all', 1, $1, 16, 45000)`
const SETTLE = `select outbox.settle_replay('all', 1, $1, $2::bigint, $3::json) as met`

/** Under an old fence, by another owner, from another place, beyond the live cursor: refused. */
export const fenced = defineCase('replay-against-live: every settle is fenced', async (env) => {
  const { s, outbox } = await delivered(env)
  const { id } = await replay(outbox)
  await s.db.query(`select outbox.take_journey('w', '{replay}', array[null::text], null, 1000000000)`)
  const [a] = await s.db.query<{ lane: number; fence: number }>(CLAIM, ['a'])
  await s.clock.advance(46_000)
  const [b] = await s.db.query<{ lane: number; fence: number }>(CLAIM, ['b'])
  expect(b, 'only the lane with something to send again').toEqual({ lane: 5, fence: 3 })
  const counts = { sent: 0, delivered: 0, superseded: 0, failed: 0 }
  const settle = async (who: string, fence: number | undefined, from: number, to: number) => {
    const settlement = { lane: 5, fence, from, to, ...counts }
    const [row] = await s.db.query(SETTLE, [who, id, JSON.stringify({ settlement })])
    return row?.met
  }
  expect(await settle('a', a?.fence, 0, 1), 'an old fence').toBeNull()
  expect(await settle('a', b?.fence, 0, 1), 'an old owner').toBeNull()
  expect(await settle('b', b?.fence, 1, 2), 'from another place').toBeNull()
  expect(await settle('b', b?.fence, 0, 4), 'beyond the live cursor').toBeNull()
  expect(await settle('b', b?.fence, 0, 1)).toBe(false)
  expect(await settle('b', b?.fence, 0, 1), 'the same again').toBeNull()
  expect(await settle('b', b?.fence, 1, 3), 'up to the live cursor').toBe(true)
  await holds(s.db, 'I7')
})

/** A destination that takes calls as tasks: a lane whose slice is a task waits for its end. */
export const asTask = defineCase('handle-after-replay: sent again as a task', async (env) => {
  const s = await stage(env)
  const tasks = new Tasks()
  tasks.judge = () => ({ outcome: 'delivered' })
  const outbox = s.outbox(tasks.sink())
  const [a] = (await s.inLane(5, 1)) as [string]
  const [other] = (await s.inLane(7, 1)) as [string]
  await s.change(a)
  await outbox.runOnce(quiet)
  tasks.judge = () => undefined
  const { id } = await replay(outbox)
  const worker = await outbox.start({ ...quiet, concurrency: 1 })
  await eventually(() => tasks.sent.length === 2)
  await s.change(a, other)
  await eventually(() => tasks.sent.length === 3)
  expect(tasks.sent, 'the lane waits for its task').toEqual([`${a}@1`, `${a}@1`, `${other}@1`])
  tasks.judge = () => ({ outcome: 'delivered' })
  tasks.end(2)
  tasks.end(1)
  expect(await outbox.journeys.wait(id)).toMatchObject({ state: 'succeeded' })
  await worker.stop()
  expect(tasks.applied.filter((name) => name.startsWith(`${a}@`)).at(-1)).toBe(`${a}@2`)
})

/** Live events that never end leave a replay its share. */
export const besideBacklog = defineCase('replay-against-live: a backlog that lasts', async (env) => {
  // One lane, so that this loop has its share and nothing else to look for.
  const { s, sink, outbox, a, b } = await delivered(env, { batch: { count: 1 }, lanes: 1 })
  const { id } = await replay(outbox)
  const lasting = [a, b].flatMap((one) => Array.from({ length: 10 }, () => one))
  await s.change(...lasting)
  const { deliver } = sink
  let done = false
  Object.assign(sink, {
    // Each call leaves more behind than it takes.
    deliver: async (...call: Parameters<typeof deliver>) => {
      if (!done) await s.change(a)
      return deliver(...call)
    },
  })
  const worker = await outbox.start({ ...quiet, concurrency: 1 })
  const sentAgain = () => versionsOf(sink, a).filter((version) => version === 1).length > 0
  await eventually(sentAgain, { timeoutMs: 10_000, what: 'the replay beside a backlog that lasts' }).finally(() => {
    done = true
  })
  await outbox.journeys.wait(id)
  await worker.stop()
  expect(await s.open()).toBe(0)
  await holds(s.db, 'I7', 'I8')
})

/** A newer revision comes while a slice is out: its lane is not given back before the call has ended. */
export const outdatedMeanwhile = defineCase('replay-against-live: a newer revision meanwhile', async (env) => {
  const { s, sink, outbox, a } = await delivered(env, { batch: { count: 1 } })
  const [out, hold] = [gate(), gate()]
  const { deliver } = sink
  Object.assign(sink, {
    deliver: async (...call: Parameters<typeof deliver>) => {
      out.open()
      await hold.opened
      return deliver(...call)
    },
  })
  await replay(outbox)
  const warned = gate()
  const listener = { warning: ({ code }: { code: string }) => code === 'HMD_SUBSCRIPTION_OUTDATED' && warned.open() }
  const serving = s.outbox(sink, { subscription: { batch: { count: 1 } }, listener })
  const worker = await serving.start({ ...quiet, concurrency: 1 })
  await out.opened
  await s.outbox(sink, { subscription: { revision: 2 } }).runOnce({ ...quiet, concurrency: 1 })
  await warned.opened
  const lane = () => s.db.query<{ owner: string | null }>('select owner from outbox.lane where lane = 5')
  for (let look = 0; look < 20; look++) {
    expect((await lane())[0]?.owner, 'the lane of a slice that is out').not.toBeNull()
    await s.change('elsewhere')
  }
  hold.open()
  await eventually(async () => (await lane())[0]?.owner === null)
  await worker.stop()
  expect(versionsOf(sink, a).at(-1)).toBeDefined()
})
