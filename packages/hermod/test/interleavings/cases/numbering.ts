// Numbering what committed: late commits, rollbacks, savepoints, transaction ids in an unlucky order.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import { emit, emitAlone, logged, positions, step, value } from './script.ts'

export const lateCommit = defineCase('late-commit', async ({ db }) => {
  const t1 = await session(db, 't1')
  const t2 = await session(db, 't2')
  await t1.begin()
  const low = await emit(t1, 'late')
  const high = await emitAlone(t2, 'early')
  expect(low).toBeLessThan(high)
  expect(await step(db)).toBe(1)
  await t1.commit()
  expect(await step(db), 'events of the late commit').toBe(1)
  expect(await logged(db)).toEqual(['early', 'late'])
  await holds(db, 'I1', 'I3', 'I5')
})

/** The open transaction is in the last stored snapshot; after its commit nobody writes anything. */
export const lateCommitAlone = defineCase('late-commit: with no other traffic, at the next poll', async ({ db }) => {
  const t1 = await session(db, 't1')
  const t2 = await session(db, 't2')
  await t1.begin()
  await emit(t1, 'late')
  await emitAlone(t2, 'early')
  await step(db)
  expect(await value(db, 'select pg_snapshot_xip(snapshot)::text from outbox.step')).toBe(
    await value(t1, 'select pg_current_xact_id()::text'),
  )
  expect([await step(db), await step(db)]).toEqual([0, 0])
  await t1.commit()
  expect(await step(db)).toBe(1)
  expect(await step(db)).toBe(0)
  await holds(db, 'I1', 'I3', 'I5')
})

export const rollback = defineCase('rollback', async ({ db }) => {
  const t1 = await session(db, 't1')
  const t2 = await session(db, 't2')
  await emitAlone(t2, 'a')
  await t1.begin()
  const burnt = [await emit(t1, 'gone'), await emit(t1, 'gone')]
  await emitAlone(t2, 'b')
  expect(await step(db)).toBe(2)
  await t1.rollback()
  const after = await emitAlone(t2, 'c')
  expect(after).toBeGreaterThan(Math.max(...burnt) + 1)
  expect(await step(db)).toBe(1)
  expect(await positions(db)).toEqual([1, 2, 3])
  expect(await logged(db)).toEqual(['a', 'b', 'c'])
  await holds(db, 'I1', 'I3', 'I5')
})

export const savepointRollback = defineCase('savepoint-rollback', async ({ db }) => {
  const t1 = await session(db, 't1')
  const t2 = await session(db, 't2')
  await t1.begin()
  const xid = await value(t1, 'select pg_current_xact_id()::text')
  await t1.run('savepoint one')
  await emit(t1, 'undone')
  await t1.run('rollback to one')
  await t1.run('savepoint two')
  await emit(t1, 'kept')
  await t1.run('release two')
  await t1.run(`do $$ begin
      perform outbox.emit('doc.updated', 'doc', 'kept in a block');
      begin
        perform outbox.emit('doc.updated', 'doc', 'undone in a block');
        raise 'no';
      exception when others then
        perform outbox.emit('doc.updated', 'doc', 'kept in a handler');
      end;
    end $$`)
  // Somebody commits with a higher id, so that the sub-transactions' ids lie below the snapshot's end.
  await emitAlone(t2, 'other')
  expect(await step(db)).toBe(1)
  await t1.commit()
  await step(db)
  expect(await logged(db), 'events that survive savepoints').toEqual([
    'other',
    'kept',
    'kept in a block',
    'kept in a handler',
  ])
  const xids = await db.query(`select distinct xid::text from outbox.event where aggregate_id <> 'other'`)
  expect(xids).toEqual([{ xid }])
  await holds(db, 'I1', 'I3', 'I5')
})

/** `xmax` of a snapshot is the latest *completed* id + 1: running ones may lie at or above it. */
export const xidAtXmax = defineCase('xid-at-xmax', async ({ db }) => {
  const t1 = await session(db, 't1')
  const t2 = await session(db, 't2')
  await t1.begin()
  await emit(t1, 'first')
  await t2.begin()
  await emit(t2, 'second')
  expect(await step(db)).toBe(0)
  const xid = await value<string>(t1, 'select pg_current_xact_id()::text')
  const [stored] = await db.query(
    `select pg_snapshot_xmax(snapshot)::text::bigint >= $1::bigint + 2 as counted, array(select pg_snapshot_xip(snapshot))::text as xip
       from outbox.step`,
    [xid],
  )
  await t2.commit()
  await step(db)
  await t1.commit()
  await step(db)
  expect(await logged(db), 'events of ids at or above xmax').toEqual(['second', 'first'])
  expect(stored, 'the script: both ids at or above xmax, none in progress').toEqual({
    counted: false,
    xip: '{}',
  })
  await holds(db, 'I1', 'I3', 'I5')
})

/** An id is taken, then a key is waited for while others commit and are numbered; only then the row is written. */
export const keyWaitedFor = defineCase('late-commit: waiting for a key', async ({ db }) => {
  const keyed = `select outbox.emit('doc.updated', 'doc', $1, '{"v": 1}', key => 'same')`
  const t0 = await session(db, 't0')
  const t1 = await session(db, 't1')
  const t2 = await session(db, 't2')
  await t0.begin()
  await t0.run(keyed, ['undone'])
  await t1.begin()
  const waiting = t1.start(keyed, ['waited'])
  await waiting.blocked(t0)
  for (const id of ['one', 'two', 'three']) await emitAlone(t2, id)
  expect(await step(db)).toBe(3)
  await t0.rollback()
  await waiting.promise
  await t1.commit()
  await emitAlone(t2, 'four')
  await step(db)
  expect((await logged(db)).sort(), 'an id taken before its row was written').toEqual(
    ['one', 'two', 'three', 'waited', 'four'].sort(),
  )
  await holds(db, 'I1', 'I3', 'I5')
})

/** The same with a step in between: then its transaction is listed, and asked for by what was known when it got its xid. */
export const keyWaitedForListed = defineCase('late-commit: waiting for a key, listed by then', async ({ db }) => {
  const keyed = `select outbox.emit('doc.updated', 'doc', $1, '{"v": 1}', key => 'same')`
  const [t0, t1, t2] = [await session(db, 't0'), await session(db, 't1'), await session(db, 't2')]
  await t0.begin()
  await t0.run(keyed, ['undone'])
  await t1.begin()
  const waiting = t1.start(keyed, ['waited'])
  await waiting.blocked(t0)
  await emitAlone(t2, 'one')
  expect(await step(db)).toBe(1)
  await t0.rollback()
  await waiting.promise
  await emitAlone(t2, 'two')
  expect(await step(db)).toBe(1)
  await t1.commit()
  await step(db)
  expect(await logged(db), 'an id taken before its row was written').toEqual(['one', 'two', 'waited'])
  await holds(db, 'I1', 'I3', 'I5')
})

/**
 * While nextval() logs, the sequence's page shows a value 32 ahead for a moment. A step that took it for handed out
 * would miss the events that get those ids later.
 */
export const lastIdAhead = defineCase('late-commit: ids that look handed out', async ({ db }) => {
  const [busy, reader] = [await session(db, 'busy'), await session(db, 'reader')]
  // Again and again 1001 is handed out, each time that is logged: no higher id can be read, however slow the machine is.
  await busy.run(`select setval('outbox.event_id', 1000)`)
  const taking = busy.start(`do $$ begin
    for n in 1 .. 100000000 loop perform setval('outbox.event_id', nextval('outbox.event_id') - 1); end loop;
  end $$`)
  let ahead = 0
  for (let round = 0; round < 100 && ahead === 0; round++) {
    ahead = await value<number>(
      reader,
      `select count(*)::int from (select outbox.last_id() as id from generate_series(1, 200) offset 0) r where id > 1001`,
    )
  }
  expect(taking.done, 'ids were taken all the time').toBe(false)
  await busy.kill()
  expect(ahead, 'reads of an id that was never handed out').toBe(0)
})

export const xidBeforeRow = defineCase('xid-before-row', async ({ db }) => {
  await db.query(`create table doc (id text primary key, v int not null default 0);
                  insert into doc (id) values ('x')`)
  const change = `update doc set v = v + 1 where id = 'x' returning v`
  const t1 = await session(db, 't1')
  const t2 = await session(db, 't2')
  await t1.begin()
  const older = await value<string>(t1, 'select pg_current_xact_id()::text')
  await t2.begin()
  await emit(t2, 'x', await value(t2, change))
  const newer = await value<string>(t2, 'select pg_current_xact_id()::text')
  expect(Number(older)).toBeLessThan(Number(newer))
  const waiting = t1.start(change)
  await waiting.blocked(t2)
  await t2.commit()
  const [row] = await waiting.promise
  await emit(t1, 'x', row?.v as number)
  await t1.commit()
  expect(await step(db)).toBe(2)
  await holds(db, 'I1', 'I3', 'I5')
})

/** Four events in pieces of two: the last piece is full, so the window's end is found by an empty one. */
export const windowInPieces = defineCase('window-in-pieces', async ({ db }) => {
  const [producer, open] = [await session(db, 'producer'), await session(db, 'open')]
  const piece = async () => {
    const [row] = await db.query('select numbered, more from outbox.sequence(2)')
    return [row?.numbered, row?.more]
  }
  await open.begin()
  await emit(open, 'low id, late')
  for (const id of ['a', 'b', 'c', 'd']) await emitAlone(producer, id)
  expect([await piece(), await piece()]).toEqual([
    [2, true],
    [2, true],
  ])
  // Between the pieces: these belong to the next window.
  await open.commit()
  await emitAlone(producer, 'e')
  expect(await piece(), 'the empty end of a window, with a next one to open').toEqual([0, true])
  expect(await piece()).toEqual([2, true])
  expect(await piece()).toEqual([0, true])
  expect(await piece()).toEqual([0, false])
  expect(await logged(db)).toEqual(['a', 'b', 'c', 'd', 'low id, late', 'e'])
  await holds(db, 'I1', 'I3', 'I5')
})
