// Cases 41 and 45: partitions that were not there in time, and partitions added, emptied and
// dropped while a producer's transaction stays open.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import type { TestDatabase } from '../../../../../test/support/database.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { type Session, session } from '../../../../../test/support/session.ts'
import { dayMs, emitMany, leafName, rowsIn, setup, tinyLeaves } from './leaves.ts'

const leavesOfEvents = `select name, from_value::int, to_value::int from outbox.partition
  where parent = 'event' and to_value is not null order by from_value`

export const noPartition = defineCase('no-partition', async (env) => {
  const { db, engine } = env
  const { turn, sink, outbox, warnings } = await setup(env)
  await db.query(`drop table outbox.${leafName('event', 1)}`)
  await db.query(`select outbox.add_partition('event', 1, 11)`)
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  await emitMany(db, 30)
  expect(await rowsIn(db, 'event_default'), 'an insert never fails').toBe(20)
  await turn()
  expect(warnings.map(({ code }) => code)).toEqual(['HMD_PARTITION_DEFAULT'])
  const [, next] = await db.query<{ from_value: number }>(leavesOfEvents)
  expect(next?.from_value, 'the next range starts above the id sequence').toBeGreaterThan(30)
  await emitMany(db, 5, 'between')
  await db.query(`select setval('outbox.event_id', $1)`, [next?.from_value])
  await emitMany(db, 5, 'after')
  expect(await rowsIn(db, 'event_default'), 'upkeep moves on').toBe(25)
  await engine.testing.drain(outbox)
  expect(sink.accepted.length).toBe(40)
  await turn()
  expect(warnings.length, 'told again when it has grown').toBe(2)
  await turn()
  expect(warnings.length, 'and only then').toBe(2)
  await holds(db, 'I1', 'I3', 'I5', 'I8')
})

export const fullDefault = defineCase('no-partition: a default partition with much in it', async (env) => {
  const { db } = env
  const { turn } = await setup(env)
  await db.query(`drop table outbox.${leafName('event', 1)}`)
  await db.query(`insert into outbox.event (type, aggregate_type, aggregate_id, bytes, payload)
    select 'a.b', 'a', n::text, 180, json_build_object('x', repeat('y', 170)) from generate_series(1, 130000) n`)
  // An emitter that stops at any lock held for long.
  const emitter = await session(db, 'emitter')
  await emitter.run(`set lock_timeout = '100ms'`)
  const added = await db.query<{ says: string }>(`select outbox.add_ahead('event', 7) as says`)
  expect(added[0]?.says, 'the range is walled off first').toBe('again')
  await emitter.run(`select outbox.emit('a.b', 'a', 'x', '{}')`)
  const walls = `select convalidated from pg_constraint where conname like 'event\\_wall\\_%'`
  expect(await db.query(walls)).toEqual([{ convalidated: false }])
  await turn()
  expect(await db.query(walls), 'no wall is left').toEqual([])
  const leaves = await db.query<{ from_value: number }>(leavesOfEvents)
  expect(leaves.length, 'two leaves ahead').toBe(2)
  await db.query(`select setval('outbox.event_id', $1)`, [leaves[0]?.from_value])
  await emitter.run(`select outbox.emit('a.b', 'a', 'x', '{}')`)
  expect(await rowsIn(db, leaves[0] ? leafName('event', leaves[0].from_value) : '')).toBe(1)
})

/** Statements in a row until told to stop, each with PostgreSQL's own limit of 100 ms per lock. */
async function keepRunning(of: Session, sql: string, stop: AbortSignal) {
  const seen = { count: 0, slowestMs: 0 }
  await of.run(`set lock_timeout = '100ms'`)
  while (!stop.aborted) {
    const startedMs = performance.now()
    await of.run(sql)
    seen.slowestMs = Math.max(seen.slowestMs, performance.now() - startedMs)
    seen.count++
  }
  return seen
}

async function traffic(db: TestDatabase, stop: AbortSignal) {
  const emits = await session(db, 'emits')
  const steps = await session(db, 'steps')
  const claims = await session(db, 'claims')
  return Promise.all([
    keepRunning(emits, `select outbox.emit('document.updated', 'document', 'hot', '{}')`, stop),
    keepRunning(steps, 'select * from outbox.sequence()', stop),
    keepRunning(claims, `select * from outbox.claim('all', 1, 'c', 4, 1)`, stop),
  ])
}

export const openProducer = defineCase('upkeep-with-open-producer', async (env) => {
  const { db, engine } = env
  const { turn, clock, sink, outbox } = await setup(env)
  await tinyLeaves(db, 6)
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  await emitMany(db, 65)
  await engine.testing.drain(outbox)
  await clock.advance(8 * dayMs)
  const producer = await session(db, 'producer')
  await producer.begin()
  await producer.run(`select outbox.emit('document.updated', 'document', 'open', '{}')`)
  const stop = new AbortController()
  const running = traffic(db, stop.signal).finally(() => stop.abort())
  running.catch(() => {})
  const done: Awaited<ReturnType<typeof turn>>[] = []
  for (let n = 0; n < 6 && !stop.signal.aborted; n++) {
    // A leaf more each time: the ranges ahead look too small.
    await db.query(`select setval('outbox.event_id', greatest((select last_value + 1000 from outbox.event_id),
      (select max(to_value) - 10 from outbox.partition where parent = 'event')))`)
    done.push(await turn())
  }
  stop.abort()
  const seen = await running.catch((error: Error) => error)
  expect(seen, 'no emit, step or claim waits more than 100 ms for a lock').not.toBeInstanceOf(Error)
  for (const { count } of seen as { count: number }[]) expect(count).toBeGreaterThan(0)
  console.log(
    'upkeep-with-open-producer: slowest emit, step, claim in ms:',
    (seen as { slowestMs: number }[]).map(({ slowestMs }) => Math.round(slowestMs)).join(', '),
  )
  expect(
    done.flatMap(({ emptied }) => emptied),
    'emptied meanwhile',
  ).toContain(leafName('event', 1))
  expect(done.flatMap(({ dropped }) => dropped)).toContain(leafName('log', 1))
  const leaves = await db.query(leavesOfEvents)
  expect(leaves.length, 'added meanwhile').toBeGreaterThan(9)
  expect(done.at(-1)?.held.get(leafName('event', 1)), 'the drop waits for the producer').toBe('busy')
  await producer.commit()
  await turn()
  expect(await rowsIn(db, leafName('event', 1)), 'dropped when the producer has ended').toBe(-1)
  await engine.testing.drain(outbox)
  expect(sink.accepted.some(({ aggregateId }) => aggregateId === 'open')).toBe(true)
})
