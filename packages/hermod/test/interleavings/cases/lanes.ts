// Lanes: who may take them, how far they are read, and what a new or raised subscription hears.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { auditLanes, holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import { labels, quiet, stage } from './stage.ts'

const CLAIM = `select lane, fence::int, pos::int from outbox.claim('all', 1, $1, $2, 45000)`

export const claimRace = defineCase('claim-race', async (env) => {
  const s = await stage(env)
  await auditLanes(s.db)
  await s.outbox(env.engine.testing.memorySink()).runOnce(quiet)
  for (let lane = 0; lane < 16; lane++) await s.change(...(await s.inLane(lane, 1)))
  const claimers = await Promise.all(['a', 'b', 'c', 'd'].map((name) => session(s.db, name)))
  // Each has taken some and not committed; nobody waits, nobody gets another's.
  for (const claimer of claimers) await claimer.begin()
  const claims = await Promise.all(claimers.map((claimer) => claimer.run<{ lane: number }>(CLAIM, [claimer.name, 6])))
  for (const claimer of claimers) await claimer.commit()
  const lanes = claims.flat().map(({ lane }) => lane)
  expect(new Set(lanes).size, 'lanes claimed twice').toBe(lanes.length)
  const rest = await s.db.query<{ lane: number }>(CLAIM, ['e', 16])
  expect([...lanes, ...rest.map(({ lane }) => lane)].sort((a, b) => a - b)).toEqual(
    Array.from({ length: 16 }, (_, lane) => lane),
  )
  await holds(s.db, 'I7')
})

export const moreLoopsThanLanes = defineCase('claim-race: more loops than lanes', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  let claims = 0
  const listener = { claim: () => claims++ }
  const outbox = s.outbox(sink, { listener })
  const workers = [
    await outbox.start({ ...quiet, concurrency: 8 }),
    await outbox.start({ ...quiet, concurrency: 8 }),
    await outbox.start({ ...quiet, concurrency: 8 }),
  ]
  await s.change('a', 'b', 'c')
  await eventually(() => sink.accepted.length === 3)
  for (const worker of workers) await worker.stop()
  expect(claims, 'claims that took lanes').toBeLessThan(30)
  expect(labels(sink).sort()).toEqual(['a@1', 'b@1', 'c@1'])
  expect(await s.held(), 'lanes still held').toBe(0)
})

export const idlePoll = defineCase('idle-poll', async (env) => {
  const s = await stage(env)
  await s.outbox(env.engine.testing.memorySink()).runOnce(quiet)
  await s.change('a')
  await s.outbox(env.engine.testing.memorySink()).runOnce(quiet)
  const poll = await session(s.db, 'poll')
  await poll.begin()
  expect(await poll.run(CLAIM, ['poll', 16]), 'lanes of an idle subscription').toEqual([])
  await poll.run(`select * from outbox.read('all', 1, '{0,1,2}', '{9,9,9}', 100, 1000000, 10000, false)`)
  const [row] = await poll.run('select pg_current_xact_id_if_assigned() as xid')
  expect(row?.xid, 'an idle poll wrote something').toBeNull()
  await poll.rollback()
})

export const sparseFilter = defineCase('sparse-filter', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  await s.bulk(100_000, `case when n = 70000 then 'rare.seen' else 'doc.changed' end`, `'d' || n % 500`)
  await s.db.query(`create table scanned (lane smallint, after bigint, rows int);
    alter function outbox.scan rename to scan_really;
    create function outbox.scan(single boolean, from_lane smallint, after bigint, up_to bigint, rows_max integer) returns setof outbox.log
    language sql as $$ insert into public.scanned values (from_lane, after, rows_max); select * from outbox.scan_really(single, from_lane, after, up_to, rows_max) $$`)
  await s.outbox(sink, { subscription: { types: ['rare.*'] } }).runOnce(quiet)
  expect(sink.accepted.map(({ type }) => type)).toEqual(['rare.seen'])
  expect(await s.open(), 'positions the cursor has not passed').toBe(0)
  const twice = await s.db.query(
    `select s.lane, s.after, count(*) from scanned s
      where exists (select from outbox.log l where l.lane = s.lane and l.pos > s.after)
      group by 1, 2 having count(*) > 2`,
  )
  expect(twice, 'ranges read more than once').toEqual([])
  await holds(s.db, 'I1', 'I8')
})

export const newSubscription = defineCase('new-subscription', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  await s.change('before')
  const open = await session(s.db, 'open')
  await open.begin()
  await open.run(`select outbox.emit('doc.changed', 'doc', 'open', '{"v": 1}')`)
  const outbox = s.outbox(sink, { subscription: { from: 'now' } })
  await outbox.runOnce(quiet)
  await open.commit()
  await s.change('after')
  await outbox.runOnce(quiet)
  expect(labels(sink).sort(), 'what a subscription from now hears').toEqual(['after@1', 'open@1'])
})

/** A pair (type, aggregate type) numbered for the first time while a lane is being read. */
export const newKind = defineCase('new-kind-while-reading', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const [id, other] = await s.inLane(3, 2)
  const outbox = s.outbox(sink, { subscription: { types: ['doc.*'] } })
  await s.emit(['other'], 'other.changed')
  await s.step()
  await outbox.runOnce(quiet)
  // Held up after the kinds were looked up, before the log is read.
  await s.db.query(`alter function outbox.kinds rename to kinds_really;
    create function outbox.kinds(types text[], aggregates text[]) returns smallint[] language plpgsql as $$
    declare found smallint[] := outbox.kinds_really(types, aggregates);
    begin perform pg_advisory_xact_lock_shared(42); return found; end $$`)
  const holder = await session(s.db, 'holder')
  await holder.run('select pg_advisory_lock(42)')
  // In the same lane: one without news is not looked at.
  await s.emit([other as string], 'other.changed')
  await s.step()
  const reader = await session(s.db, 'reader')
  const reading = reader.start<{ through: string | null; fields: string | null }>(
    `select through, fields from outbox.read('all', 1, '{3}', '{1}', 100, 1000000, 10000, false)`,
  )
  await reading.blocked(holder)
  await s.change(id as string)
  await holder.run('select pg_advisory_unlock(42)')
  const rows = await reading.promise
  const passed = rows.at(-1)?.through ?? null
  const found = rows.some((row) => row.fields !== null)
  expect(found || passed === null || Number(passed) < 3, 'a new kind was passed unread').toBe(true)
  await outbox.runOnce(quiet)
  expect(labels(sink), 'what arrived in the end').toEqual([`${id}@1`])
})

export const oldRevisionWorker = defineCase('old-revision-worker', async (env) => {
  const s = await stage(env)
  await auditLanes(s.db)
  const [first, second] = [env.engine.testing.memorySink(), env.engine.testing.memorySink()]
  const warnings: string[] = []
  const listener = { warning: ({ code }: { code: string }) => warnings.push(code) }
  const old = s.outbox(first, { subscription: { types: ['doc.*'] }, listener })
  const worker = await old.start(quiet)
  await s.change('a')
  await eventually(async () => first.accepted.length === 1 && (await s.open()) === 0)
  const raised = s.outbox(second, { subscription: { types: ['*'], revision: 2 } })
  await raised.runOnce(quiet)
  await s.emit(['b'], 'note.changed')
  await s.emit(['c'])
  await s.step()
  await eventually(() => warnings.length > 0)
  await eventually(async () => (await s.held(worker.id)) === 0)
  expect(await s.open(), 'positions the old worker passed').toBe(2)
  await raised.runOnce(quiet)
  await worker.stop()
  expect(labels(second).sort(), 'what the raised revision delivered').toEqual(['b@1', 'c@1'])
  expect(labels(first), 'what the old revision delivered').toEqual(['a@1'])
  expect(warnings).toEqual(['HMD_SUBSCRIPTION_OUTDATED'])
  // One that starts now is outdated too: it starts, warns and does not claim.
  const late = await s.outbox(first, { subscription: { types: ['doc.*'] }, listener }).start(quiet)
  await eventually(() => warnings.length > 1)
  await late.stop()
  await holds(s.db, 'I7', 'I8')
})

/** A settle under the old filter that is about to commit cannot pass the new filter's position. */
export const raiseAgainstSettle = defineCase('old-revision-worker: settle in flight', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  await s.outbox(sink, { subscription: { types: ['doc.*'] } }).runOnce(quiet)
  const [id] = await s.inLane(0, 1)
  await s.emit([id as string], 'note.changed')
  await s.step()
  await s.db.query(`select * from outbox.claim('all', 1, 'old', 16, 45000)`)
  const old = await session(s.db, 'old')
  const raise = await session(s.db, 'raise')
  await old.begin()
  const settled = await old.run(
    `select * from outbox.settle('all', 1, 'old', '{"settlements": [{"lane": 0, "fence": 1, "from": 0, "to": 1, "sent": 0, "delivered": 0, "superseded": 0, "failed": 0}], "call": {}}')`,
  )
  expect(settled.length).toBe(1)
  const raising = raise.start(
    `select outbox.subscribe('all', 2, '{}', '{*}', null, 16::smallint, true, false, false, false, 'live', 0)`,
  )
  await raising.blocked(old)
  await old.commit()
  await raising.promise
  const [filter] = await s.db.query('select max(from_pos)::int as pos from outbox.filter')
  expect(filter?.pos, 'where the new filter begins').toBe(1)
  await s.emit([id as string], 'note.changed')
  await s.step()
  const late = await s.db.query(
    `select * from outbox.settle('all', 1, 'old', '{"settlements": [{"lane": 0, "fence": 1, "from": 1, "to": 2, "sent": 0, "delivered": 0, "superseded": 0, "failed": 0}], "call": {}}')`,
  )
  expect(late, 'a settle under an old revision').toEqual([])
})

/** 100,000 events wait in one lane of a slow sink; a document in each other lane is not behind them. */
export const noisyLane = defineCase('noisy-lane', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const slow = {
    ...sink,
    deliver: async (...args: Parameters<typeof sink.deliver>) => {
      await new Promise((resolve) => setTimeout(resolve, 2))
      return sink.deliver(...args)
    },
  }
  const [noisy] = await s.inLane(7, 1)
  await s.bulk(100_000, `'doc.changed'`, `'${noisy}'`)
  const outbox = s.outbox(slow)
  const worker = await outbox.start({ ...quiet, concurrency: 2 })
  await eventually(() => sink.accepted.length > 200)
  const others: string[] = []
  for (let lane = 0; lane < 16; lane++) if (lane !== 7) others.push(...(await s.inLane(lane, 1)))
  await s.change(...others)
  const startedMs = performance.now()
  const arrived = () => sink.accepted.filter(({ aggregateId }) => aggregateId !== noisy).length
  await eventually(() => arrived() === 15, { timeoutMs: 5_000, what: 'the other lanes' })
  const tookMs = performance.now() - startedMs
  expect(sink.accepted.length, 'the noisy lane is not done yet').toBeLessThan(100_000)
  expect(tookMs, 'latency beside a noisy lane').toBeLessThan(2_000)
  await worker.stop()
})

/** Under a backlog that never ends, a worker that joins gets its share. */
export const joinUnderLoad = defineCase('claim-race: a worker joins under load', async (env) => {
  const s = await stage(env)
  const sinks = [env.engine.testing.memorySink(), env.engine.testing.memorySink()] as const
  await s.bulk(60_000, `'doc.changed'`, `'d' || n % 300`)
  const slowly = (sink: (typeof sinks)[0]) => ({
    ...sink,
    deliver: async (...args: Parameters<typeof sink.deliver>) => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      return sink.deliver(...args)
    },
  })
  const first = await s.outbox(slowly(sinks[0])).start({ ...quiet, concurrency: 2 })
  await eventually(async () => (await s.held(first.id)) === 16)
  const second = await s.outbox(slowly(sinks[1])).start({ ...quiet, concurrency: 2 })
  await eventually(async () => (await s.held(second.id)) === 8, {
    timeoutMs: 4_000,
    what: 'a fair share',
  })
  await eventually(() => sinks[1].accepted.length > 100)
  await Promise.all([first.stop(), second.stop()])
  expect(await s.held(), 'lanes still held').toBe(0)
})

/** A worker of an older revision claims nothing, so it has no share of the lanes either. */
export const outdatedShare = defineCase('raised: an outdated worker has no share', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const ids = (await Promise.all(Array.from({ length: 16 }, (_, lane) => s.inLane(lane, 1)))).flat()
  await s.change(ids[0] as string)
  const old = await s.outbox(sink).start({ ...quiet, concurrency: 1 })
  await eventually(() => sink.accepted.length === 1)
  const raised = await s.outbox(sink, { subscription: { revision: 2 } }).start({ ...quiet, concurrency: 1 })
  const reached = () => new Set(sink.accepted.map(({ aggregateId }) => aggregateId)).size
  const busy = async () => {
    await s.change(...ids)
    return reached() === ids.length
  }
  await eventually(busy, { timeoutMs: 15_000, what: 'every lane is served' })
  await old.stop()
  await raised.stop()
})
