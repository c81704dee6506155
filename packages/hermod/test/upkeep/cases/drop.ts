// Case 40: what must keep a partition from going. Leaves of ten rows, a clock that jumps days.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import { dayMs, emitMany, leafName, missing, numberAll, rowsIn, setup, tinyLeaves } from './leaves.ts'

const firstLog = leafName('log', 1)
const firstEvent = leafName('event', 1)

export const dropGoes = defineCase('drop: what is old and read by all goes', async (env) => {
  const { db, engine } = env
  const { turn, clock, sink, outbox } = await setup(env)
  await tinyLeaves(db)
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  await emitMany(db, 35)
  await engine.testing.drain(outbox)
  await turn()
  expect(await rowsIn(db, firstLog), 'young leaves stay').toBe(10)
  await clock.advance(7.5 * dayMs)
  await turn()
  expect(await rowsIn(db, firstLog)).toBe(0)
  expect(await rowsIn(db, firstEvent)).toBe(0)
  await turn()
  expect(await rowsIn(db, firstLog), 'emptied first, dropped at the next turn').toBe(-1)
  expect(await rowsIn(db, firstEvent)).toBe(-1)
  expect(await rowsIn(db, leafName('log', 31)), 'the leaf in use stays').toBe(5)
  const audit = await db.query(
    `select action, reason, count::int, count(*) over () ::int as all from outbox.audit where action <> 'retention.attempt' order by id`,
  )
  expect(audit.slice(0, 1)).toEqual([{ action: 'retention.log', reason: firstLog, count: 10, all: 6 }])
  expect(await missing(db)).toBe(0)
  await holds(db, 'I3', 'I5', 'I8')
})

export const lateInsert = defineCase('drop: late insert into an old partition', async (env) => {
  const { db, engine } = env
  const { turn, upkeep, clock, sink, outbox } = await setup(env)
  await tinyLeaves(db)
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  const late = await session(db, 'late')
  await late.begin()
  await late.run(`select outbox.emit('document.updated', 'document', 'late', '{}')`)
  await emitMany(db, 35)
  await engine.testing.drain(outbox)
  await clock.advance(8 * dayMs)
  await turn()
  expect(upkeep.last?.held.get(firstEvent), 'an open transaction has written into the leaf').toBe('busy')
  expect(await rowsIn(db, leafName('event', 11)), 'the next leaf goes').toBe(0)
  await late.commit()
  await engine.testing.drain(outbox)
  expect(sink.accepted.filter(({ aggregateId }) => aggregateId === 'late').length, 'deliveries of the late event').toBe(
    1,
  )
  expect(await missing(db)).toBe(0)
  await holds(db, 'I5', 'I8')
})

export const slowCursor = defineCase('drop: slow cursor', async (env) => {
  const { db, engine } = env
  const { turn, upkeep, clock, sink, outbox } = await setup(env)
  await tinyLeaves(db)
  outbox.subscribe('slow', { revision: 1, types: ['*'], sink, from: 'beginning', mode: 'paused' })
  await outbox.runOnce({ upkeep: false })
  await emitMany(db, 35)
  await numberAll(db)
  await clock.advance(8 * dayMs)
  await turn()
  await db.query(`update outbox.subscription set mode = 'live'`)
  await engine.testing.drain(outbox)
  expect(sink.accepted.length, 'events a slow subscription still got').toBe(35)
  expect(upkeep.last?.held.get(firstLog)).toBe('unread by slow')
  await turn()
  expect(await rowsIn(db, firstEvent), 'gone once they are read').toBe(0)
})

export const deadRow = defineCase('drop: dead row', async (env) => {
  const { db, engine } = env
  const { turn, clock, sink, outbox } = await setup(env)
  const { rejected } = await engine.load<typeof import('../../../src/sinks/sink.ts')>('sinks/sink.ts')
  await tinyLeaves(db)
  sink.answer(({ aggregateId }) => (aggregateId === 'd3' ? rejected({ code: 'no' }) : undefined))
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  await emitMany(db, 35)
  await engine.testing.drain(outbox)
  await clock.advance(8 * dayMs)
  const before = await db.query('select event from outbox.delivery')
  expect(before, 'one dead letter, no copy yet').toEqual([{ event: null }])
  for (const from of [1, 11, 21]) {
    await db.query('select outbox.empty_leaf($1, $2, 7)', ['log', leafName('log', from)])
  }
  const [answer] = await db.query('select outbox.empty_leaf($1, $2, 7) as says', ['event', firstEvent])
  expect(answer?.says, 'a dead row without a copy holds the leaf').toBe('open deliveries without a copy')
  await turn()
  expect(await rowsIn(db, firstEvent), 'with the copy the leaf goes').toBe(0)
  const [copy] = await db.query('select event from outbox.delivery')
  expect(copy?.event).toMatchObject({ type: 'document.updated', version: 1, payload: { n: 3 } })
  sink.answer(undefined)
  await db.query(`update outbox.delivery set state = 'retrying', next_attempt_at = outbox.clock()`)
  await engine.testing.drain(outbox)
  expect(sink.accepted.at(-1), 'delivered from the copy').toMatchObject({
    aggregateId: 'd3',
    payload: { n: 3 },
  })
})

export const bornExpired = defineCase('drop: born-expired', async (env) => {
  const { db, engine } = env
  const { turn, upkeep, clock, sink, outbox } = await setup(env)
  await tinyLeaves(db, 6)
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  const old = await session(db, 'old')
  await old.begin()
  await old.run(`select outbox.emit('document.updated', 'document', 'old', '{}')`)
  await emitMany(db, 35)
  await engine.testing.drain(outbox)
  await clock.advance(8 * dayMs)
  await turn()
  await old.commit()
  await turn()
  expect(upkeep.last?.held.get(firstEvent), 'committed, not numbered').toBe('not numbered yet')
  await numberAll(db)
  await turn()
  expect(upkeep.last?.held.get(firstEvent), 'numbered, not delivered').toBe('in the log')
  await engine.testing.drain(outbox)
  const got = sink.accepted.filter(({ aggregateId }) => aggregateId === 'old')
  expect(got.length, 'deliveries of the event that was born expired').toBe(1)
  await emitMany(db, 20, 'x')
  await engine.testing.drain(outbox)
  await clock.advance(8 * dayMs)
  await turn()
  expect(await rowsIn(db, firstEvent), 'goes when its position has gone').toBe(0)
  expect(await missing(db)).toBe(0)
  await holds(db, 'I5', 'I8')
})

export const idTakenLongAgo = defineCase('drop: born-expired, an id taken before its row was written', async (env) => {
  const { db, engine } = env
  const { turn, clock, sink, outbox } = await setup(env)
  await tinyLeaves(db)
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  const first = await session(db, 'first')
  const waiting = await session(db, 'waiting')
  await first.begin()
  await first.run(`insert into outbox.idempotency (key, event_id, hash) values ('k', 0, '')`)
  const emit = waiting.start(`select outbox.emit('document.updated', 'document', 'w', '{}', null, null, 'k')`)
  await emit.blocked(first)
  await emitMany(db, 35)
  await engine.testing.drain(outbox)
  await clock.advance(8 * dayMs)
  await turn()
  await first.rollback()
  await emit.promise
  const [row] = await db.query(`select tableoid::regclass::text as leaf from outbox.event where aggregate_id = 'w'`)
  expect(row?.leaf, 'written into the emptied leaf').toBe(`outbox.${firstEvent}`)
  await turn()
  expect(await rowsIn(db, firstEvent), 'a leaf that was filled again is not dropped').toBe(1)
  await engine.testing.drain(outbox)
  expect(sink.accepted.filter(({ aggregateId }) => aggregateId === 'w').length).toBe(1)
  expect(await missing(db)).toBe(0)
  await holds(db, 'I5', 'I8')
})

export const heldFollowers = defineCase('drop: followers behind a failed event', async (env) => {
  const { db, engine } = env
  const { turn, upkeep, clock, sink, outbox } = await setup(env)
  const { rejected } = await engine.load<typeof import('../../../src/sinks/sink.ts')>('sinks/sink.ts')
  await tinyLeaves(db)
  sink.answer(({ payload }) => ((payload as { v: number }).v === 1 ? rejected({ code: 'no' }) : undefined))
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning', onDead: 'hold' })
  await db.query(
    `select outbox.emit('document.updated', 'document', 'a', json_build_object('v', v)) from generate_series(1, 3) v`,
  )
  await engine.testing.drain(outbox)
  await db.query(
    `select outbox.emit('document.updated', 'document', 'b' || n, '{"v":0}') from generate_series(1, 32) n`,
  )
  await engine.testing.drain(outbox)
  await clock.advance(8 * dayMs)
  await turn()
  expect(upkeep.last?.held.get(firstLog), 'two events wait behind a dead one').toBe(
    'followers wait behind a failed event of all',
  )
  sink.answer(undefined)
  await clock.advance(23 * dayMs)
  await turn()
  await engine.testing.drain(outbox)
  const got = sink.accepted.filter(({ aggregateId }) => aggregateId === 'a')
  expect(
    got.map(({ payload }) => payload),
    'released when the dead letter expired',
  ).toEqual([{ v: 2 }, { v: 3 }])
  const audit = await db.query(`select reason, count::int from outbox.audit where action = 'retention.delivery'`)
  expect(audit.map(({ count }) => count)).toEqual([1])
  await turn()
  expect(await rowsIn(db, firstEvent)).toBe(0)
})
