// The step itself: two at once, one that is late, one that is killed, one it must refuse.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import {
  comesToRest,
  emit,
  emitAlone,
  endsUnblocked,
  logged,
  positions,
  STEP,
  sqlState,
  step,
  value,
} from './script.ts'

export const twoSequencers = defineCase('two-sequencers', async ({ db }) => {
  const producer = await session(db, 'producer')
  const a = await session(db, 'a')
  const b = await session(db, 'b')
  await emitAlone(producer, 'one')
  await step(db)
  await emitAlone(producer, 'two')
  await a.begin()
  expect(await step(a)).toBe(1)
  const second = await endsUnblocked(b.start(STEP), 'a second sequencer')
  expect(second, 'what a second sequencer gets').toEqual([])
  await a.commit()
  expect(await step(b)).toBe(0)
  expect(await logged(db)).toEqual(['one', 'two'])
  await holds(db, 'I1', 'I3', 'I5')
})

/**
 * A holds the lock; B asks for it while T1 is open, T1 commits, A steps and commits. Whatever B does
 * (return, or wait and go on), it must not store a snapshot older than A's: T1 would be numbered
 * again. T2's higher id keeps `xmax` the same, so that nothing else can tell the two apart.
 */
export const snapshotAfterLock = defineCase('snapshot-after-lock', async ({ db }) => {
  const [t1, t2] = [await session(db, 't1'), await session(db, 't2')]
  const [a, b] = [await session(db, 'a'), await session(db, 'b')]
  await step(a)
  await t1.begin()
  await emit(t1, 'open meanwhile')
  await emitAlone(t2, 'before')
  await a.begin()
  await a.run('select pg_advisory_xact_lock(4841297201)')
  const late = b.start(STEP)
  await comesToRest(late)
  await t1.commit()
  expect(await step(a)).toBe(2)
  await a.commit()
  await late.promise
  await step(b)
  await holds(db, 'I1', 'I3', 'I5')
  expect(await logged(db)).toEqual(['open meanwhile', 'before'])
})

/**
 * The PostgreSQL search engine is installed in the same database, and waits for somebody who makes the same schema:
 * the lock of an installation is not the one of the numbering.
 */
export const besideInstall = defineCase('numbering-beside-an-install', async ({ db, engine }) => {
  const { install } = await engine.load<typeof import('../../../src/sinks/search/postgres/schema.ts')>(
    'sinks/search/postgres/schema.ts',
  )
  const [a, b, c] = [await session(db, 'a'), await session(db, 'b'), await session(db, 'c')]
  await b.begin()
  await b.run('create schema search')
  const installing = a.startCall((client) =>
    install({ rows: async (text, values) => (await client.query(text, values as unknown[])).rows }, 'search'),
  )
  await installing.blocked(b)
  await emitAlone(c, 'meanwhile')
  expect(await db.query(STEP), 'a step beside an install').toHaveLength(1)
  expect(await logged(db)).toEqual(['meanwhile'])
  await b.rollback()
  await installing.promise
})

/** A has the lock and is held up before it looks: it needs `step`, which P has locked. */
export const snapshotAfterPause = defineCase('snapshot-after-lock: held up in between', async ({ db }) => {
  const [t1, p] = [await session(db, 't1'), await session(db, 'p')]
  const [a, b] = [await session(db, 'a'), await session(db, 'b')]
  // A connection's first call would already stop at the type of `step`, before it has the lock.
  await step(a)
  await step(b)
  await t1.begin()
  await emit(t1, 'open meanwhile')
  await p.begin()
  await p.run('lock table outbox.step in access exclusive mode')
  const late = a.start(STEP)
  await late.blocked(p)
  expect(await endsUnblocked(b.start(STEP), 'a second sequencer')).toEqual([])
  await t1.commit()
  await p.commit()
  const [first] = await late.promise
  expect(first?.numbered, 'what committed between the lock and the snapshot').toBe(1)
  expect(await step(b)).toBe(0)
  await holds(db, 'I1', 'I3', 'I5')
})

export const stepKilled = defineCase('step-killed', async ({ db }) => {
  const producer = await session(db, 'producer')
  const a = await session(db, 'a')
  for (const id of ['one', 'two', 'three']) await emitAlone(producer, id)
  await a.begin()
  expect(await step(a)).toBe(3)
  const numbering = 'select pos, event_id, hash, bytes, lane, kind from outbox.log order by pos'
  const first = await a.run(numbering)
  await a.kill()
  expect(await positions(db)).toEqual([])
  expect(await step(db), 'the next step after a killed one').toBe(3)
  expect(await db.query(numbering)).toEqual(first)
  await holds(db, 'I1', 'I3', 'I5')
})

/**
 * A transaction's own id is in no snapshot it takes: a step inside a transaction that has written
 * would count it as finished, and what it emits afterwards would never be numbered.
 */
export const stepInWriter = defineCase('step-in-a-writer', async ({ db, engine }) => {
  const { sequence } = await engine.load<typeof import('../../../src/flow/sequence.ts')>('flow/sequence.ts')
  const a = await session(db, 'a')
  const b = await session(db, 'b')
  await step(db)
  await a.begin()
  await a.run('select pg_current_xact_id()')
  await emitAlone(b, 'other')
  await expect(sequence(a.client as never)).rejects.toMatchObject({ code: 'HMD_ISOLATION' })
  await a.rollback()
  await step(db)
  expect(await logged(db)).toEqual(['other'])
  await holds(db, 'I1', 'I3', 'I5')
})

export const isolation = defineCase('isolation', async ({ db, engine }) => {
  const { sequence } = await engine.load<typeof import('../../../src/flow/sequence.ts')>('flow/sequence.ts')
  await db.query(`create table doc (id text primary key, v int not null default 0);
                  insert into doc (id) values ('x'), ('y')`)
  const change = (id: string) => `update doc set v = v + 1 where id = '${id}' returning v`
  const t1 = await session(db, 't1')
  const t2 = await session(db, 't2')
  await t1.begin('isolation level repeatable read')
  await t2.begin('isolation level repeatable read')
  await emit(t2, 'not kept')
  await emit(t1, 'x', await value(t1, change('x')))
  const waiting = t2.start(change('x'))
  await waiting.blocked(t1)
  await t1.commit()
  expect(await sqlState(waiting.promise)).toBe('40001')
  await t2.rollback()

  // Write skew: each reads what the other writes; the second commit fails.
  await t1.begin('isolation level serializable')
  await t2.begin('isolation level serializable')
  await t1.run(`select v from doc where id = 'y'`)
  await t2.run(`select v from doc where id = 'x'`)
  await emit(t1, 'x', await value(t1, change('x')))
  await emit(t2, 'y', await value(t2, change('y')))
  await t1.commit()
  expect(await sqlState(t2.commit())).toBe('40001')
  expect(await step(db)).toBe(2)
  expect(await logged(db)).toEqual(['x', 'x'])
  for (const level of ['repeatable read', 'serializable']) {
    await t1.begin(`isolation level ${level}`)
    await expect(sequence(t1.client as never)).rejects.toMatchObject({ code: 'HMD_ISOLATION' })
    await t1.rollback()
  }
  await holds(db, 'I1', 'I3', 'I5')
})

export const sequenceCache = defineCase('sequence-cache', async ({ db, engine }) => {
  const { sequence } = await engine.load<typeof import('../../../src/flow/sequence.ts')>('flow/sequence.ts')
  const producer = await session(db, 'producer')
  await emitAlone(producer, 'before')
  await db.query('alter sequence outbox.event_id cache 20')
  const refusal = await sequence(db.pool as never).catch((error: unknown) => error)
  expect(refusal, 'a step with cached ids').toMatchObject({ code: 'HMD_SEQUENCE_CACHE' })
  expect(await positions(db)).toEqual([])
  // The refusal names the statement that repairs it.
  const repair = /run: (alter sequence .*)$/.exec((refusal as Error).message)?.[1]
  await db.query(repair ?? '')
  // The refused step tells its error before it gives the lock back.
  await eventually(async () => (await step(db)) === 1)
  await holds(db, 'I1', 'I3', 'I5')
})
