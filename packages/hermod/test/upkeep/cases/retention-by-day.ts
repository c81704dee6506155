// Case 69: "keep 7 days" means 7 to 8 days at any rate. Slow tables have leaves that never fill; fast ones fill several a
// day. What is still needed stays in both.

import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import type { TestDatabase } from '../../../../../test/support/database.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import { dayMs, emitMany, missing, numberAll, setup, tinyLeaves } from './leaves.ts'

/** Whole days since the oldest row of each table was written, and how many rows there are. */
const KEPT = `
  select (select count(*)::int from outbox.event) as events, (select count(*)::int from outbox.log) as positions,
    (select coalesce(max(outbox.clock() - created_at), '0') < interval '8 days 1 hour' from outbox.event) as in_time,
    (select count(*)::int from outbox.event where created_at > outbox.clock() - interval '7 days') as young,
    (select coalesce(max(outbox.clock() - started_at), '0') < interval '8 days 1 hour' from outbox.attempt) as attempts_in_time`

async function kept(db: TestDatabase) {
  const [row] = await db.query<{
    events: number
    positions: number
    young: number
    in_time: boolean
    attempts_in_time: boolean
  }>(KEPT)
  return row as NonNullable<typeof row>
}

/** Some days of the same number of events, each day delivered and followed by a turn of upkeep. */
async function live(env: Env, days: number, perDay: number) {
  const made = await setup(env)
  made.outbox.subscribe('all', { revision: 1, types: ['*'], sink: made.sink, from: 'beginning' })
  return {
    ...made,
    days: async () => {
      for (let day = 1; day <= days; day++) {
        await emitMany(env.db, perDay, `day${day}-`)
        await env.engine.testing.drain(made.outbox)
        await made.clock.advance(dayMs)
        await made.turn()
      }
    },
  }
}

export const slowTable = defineCase('retention-by-day: ten events a day', async (env) => {
  const { db } = env
  const { days, turn, clock, sink, outbox } = await live(env, 10, 10)
  await days()
  const now = await kept(db)
  expect(now.in_time, 'no event is older than eight days').toBe(true)
  expect(now.attempts_in_time, 'no attempt is older than eight days').toBe(true)
  expect(now.young, 'no younger event is gone').toBeGreaterThanOrEqual(60)
  expect(now.positions, 'a position goes with its event').toBe(now.events)
  expect(sink.accepted.length).toBe(100)
  expect(await missing(db), 'the auditor knows what retention took').toBe(0)
  await holds(db, 'I5', 'I8')
  await clock.advance(9 * dayMs)
  await turn()
  expect((await kept(db)).events, 'after a silence nothing is left').toBe(0)
  expect(await missing(db)).toBe(0)
  await emitMany(db, 5, 'later')
  await env.engine.testing.drain(outbox)
  expect(sink.accepted.length, 'and it goes on').toBe(105)
  expect(await missing(db)).toBe(0)
  await holds(db, 'I1', 'I5', 'I8')
})

export const fastTable = defineCase('retention-by-day: several leaves a day', async (env) => {
  const { db } = env
  const made = await live(env, 10, 30)
  await tinyLeaves(db, 31)
  await made.days()
  const now = await kept(db)
  expect(now.in_time, 'no event is older than eight days').toBe(true)
  expect(now.young, 'no younger event is gone').toBeGreaterThanOrEqual(180)
  const [row] = await db.query(`select count(*)::int as trims from outbox.audit where action like 'retention.%.rows'`)
  expect(row?.trims, 'whole leaves went; no row was deleted').toBe(0)
  const [leaves] = await db.query(
    `select count(*)::int as live from outbox.partition where parent = 'event' and from_value <= outbox.last_value('event')`,
  )
  expect(leaves?.live, 'partitions with something in them').toBeLessThanOrEqual(32)
  expect(await missing(db)).toBe(0)
  await holds(db, 'I5', 'I8')
})

export const atOnce = defineCase('retention-by-day: eventDays 0', async (env) => {
  const { db } = env
  const { turn, sink, outbox } = await setup(env, { eventDays: 0, attemptDays: 0 })
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  await emitMany(db, 12_000)
  await env.engine.testing.drain(outbox)
  await turn()
  expect((await kept(db)).events, 'events left').toBe(0)
  expect(sink.accepted.length).toBe(12_000)
  expect(await missing(db)).toBe(0)
  const [row] = await db.query(`select count(distinct request_id) = count(*) as once,
    sum(count) filter (where action = 'retention.event.rows')::int as events,
    sum(count) filter (where action = 'retention.log.rows')::int as positions from outbox.audit`)
  expect(row, 'every removal is recorded').toEqual({ once: true, events: 12_000, positions: 12_000 })
})

export const neededRows = defineCase('retention-by-day: what is needed stays', async (env) => {
  const { db, engine } = env
  const { turn, clock, sink, outbox } = await setup(env)
  const { rejected } = await engine.load<typeof import('../../../src/sinks/sink.ts')>('sinks/sink.ts')
  sink.answer(({ aggregateId }) => (aggregateId === 'a3' ? rejected({ code: 'no' }) : undefined))
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  const late = await session(db, 'late')
  await late.begin()
  await late.run(`select outbox.emit('document.updated', 'document', 'late', '{}')`)
  await db.query(`select outbox.emit('document.updated', 'document', 'planned', '{}', null,
    outbox.clock() + interval '30 days')`)
  await emitMany(db, 10, 'a')
  await engine.testing.drain(outbox)
  await clock.advance(9 * dayMs)
  await numberAll(db)
  await turn()
  await late.commit()
  await turn()
  const left = async () =>
    (await db.query('select aggregate_id as id from outbox.event order by id')).map(({ id }) => id)
  expect(await left(), 'neither numbered nor due yet').toEqual(['late', 'planned'])
  expect((await db.query('select from outbox.log')).length, 'positions left').toBe(0)
  const [copy] = await db.query('select event from outbox.delivery')
  expect(copy?.event, 'a dead letter keeps a copy').toMatchObject({ payload: { n: 3 } })
  await engine.testing.drain(outbox)
  await clock.advance(22 * dayMs)
  await engine.testing.drain(outbox)
  const got = sink.accepted.map(({ aggregateId }) => aggregateId)
  expect(got.slice(-2), 'both were delivered').toEqual(['late', 'planned'])
  expect(await missing(db)).toBe(0)
})

export const neededPositions = defineCase('retention-by-day: unread and kept positions stay', async (env) => {
  const { db, engine } = env
  const { turn, clock, sink, outbox } = await setup(env)
  outbox.subscribe('slow', { revision: 1, types: ['*'], sink, from: 'beginning' })
  await emitMany(db, 10, 'a')
  await engine.testing.drain(outbox)
  await db.query(`update outbox.subscription set mode = 'paused'`)
  await emitMany(db, 10, 'b')
  await numberAll(db)
  await db.query(`insert into outbox.keep (holder, pos) values ('replay 1', 5)`)
  await clock.advance(9 * dayMs)
  await turn()
  const positions = async () => (await db.query('select pos::int from outbox.log order by pos')).map(({ pos }) => pos)
  expect((await positions())[0], 'kept for a replay').toBe(6)
  await db.query('delete from outbox.keep')
  await turn()
  expect((await positions())[0], 'unread by a paused subscription').toBe(11)
  expect((await db.query('select from outbox.event')).length).toBe(10)
  const [report] = await db.query(`select subscription, held_bytes > 0 as held from outbox.retention_report()`)
  expect(report, 'who holds them is reported').toEqual({ subscription: 'slow', held: true })
  await db.query(`update outbox.subscription set mode = 'live'`)
  await engine.testing.drain(outbox)
  expect(sink.accepted.length, 'events a paused subscription still got').toBe(20)
  await turn()
  expect(await positions()).toEqual([])
})

export const heldFollowers = defineCase('retention-by-day: followers of a failed event stay', async (env) => {
  const { db, engine } = env
  const { turn, clock, sink, outbox } = await setup(env)
  const { rejected } = await engine.load<typeof import('../../../src/sinks/sink.ts')>('sinks/sink.ts')
  sink.answer(({ payload }) => ((payload as { v: number }).v === 1 ? rejected({ code: 'no' }) : undefined))
  const hold = { revision: 1, types: ['*'], sink, from: 'beginning', onDead: 'hold' } as const
  outbox.subscribe('all', hold)
  outbox.subscribe('newest', { ...hold, coalesce: 'latest' })
  for (const v of [1, 2, 3]) {
    await db.query(`select outbox.emit('document.updated', 'document', 'a', json_build_object('v', $1::int))`, [v])
    await engine.testing.drain(outbox)
  }
  const before = sink.accepted.length
  expect(before, 'all of them wait behind the first').toBe(0)
  await clock.advance(9 * dayMs)
  await turn()
  const left = await db.query('select pos::int from outbox.log order by pos')
  expect(left, 'positions that wait behind it').toEqual([{ pos: 2 }, { pos: 3 }])
  await clock.advance(23 * dayMs)
  await turn()
  await engine.testing.drain(outbox)
  const got = sink.accepted.map(({ payload }) => (payload as { v: number }).v).toSorted()
  expect(got, 'released when the dead letter expired: all of one, the newest of the other').toEqual([2, 3, 3])
})
