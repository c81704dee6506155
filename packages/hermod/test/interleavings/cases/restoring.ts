// After a restore: the guard refuses, rebase numbers exactly the rest, and the transaction ids that
// came with the rows never mean anything again.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { type Asks, holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import { burnXids, nextXid, restore, runAhead, secondCluster, step } from './restored.ts'
import { emit, emitAlone, logged, sqlState, value } from './script.ts'

export type Rebase = typeof import('../../../src/desk/rebase.ts')
export const modulePath = 'desk/rebase.ts'

/** Emits without a session, one transaction each. */
export async function emitAll(db: Asks, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await db.query(`select outbox.emit('doc.updated', 'doc', $1, $2)`, [id, '{"v": 1}'])
  }
}

/** Two events numbered, three not, one filed until next year and one not yet filed. */
export async function aLifeBefore(db: Asks): Promise<void> {
  const later = `select outbox.emit('doc.updated', 'doc', $1, '{"v": 1}', null, now() + interval '1 year')`
  await emitAll(db, ['a', 'b'])
  await db.query(later, ['filed'])
  await db.query('select outbox.sequence()')
  await emitAll(db, ['c', 'd', 'e'])
  await db.query(later, ['to be filed'])
}

export async function codeOf(promise: Promise<unknown>): Promise<string | undefined> {
  return promise.then(
    () => undefined,
    (error: { code?: string }) => error.code,
  )
}

export const restoreGuard = defineCase('restore-guard', async ({ db, engine }) => {
  const { rebase } = await engine.load<Rebase>(modulePath)
  const source = await secondCluster()
  await aLifeBefore(source)
  // This cluster is the busier one: its ids do not give the restore away.
  await runAhead(db, source, 1_000)
  await restore(source, db.pool)
  expect(await sqlState(step(db)), 'a step in a restored database').toBe('HM015')
  expect(await logged(db), 'nothing is numbered').toEqual(['a', 'b'])

  const writer = await session(db, 'writer')
  await writer.begin()
  await emit(writer, 'f')
  const stepping = await session(db, 'stepping')
  await stepping.begin()
  await stepping.run('select pg_advisory_xact_lock(4841297201)')
  expect(await codeOf(rebase(db.pool, { waitMs: 50 })), 'a step runs').toBe('HMD_REBASE_BUSY')
  await stepping.rollback()
  const busy = await rebase(db.pool, { waitMs: 100 }).catch((error) => error)
  expect(busy).toMatchObject({ code: 'HMD_REBASE_BUSY' })
  expect(busy.details.detail).toContain(`pid ${writer.pid} (writer, idle in transaction`)

  const waiting = (await session(db, 'operator')).startCall((client) =>
    rebase({ query: (q: never) => client.query(q), connect: async () => asPooled(client) }),
  )
  await waiting.blocked(writer)
  await writer.commit()
  expect(await waiting.promise).toMatchObject({ numbered: 4, filed: 1, retired: 0, epoch: 1 })
  expect(await logged(db)).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
  await emitAll(db, ['g'])
  expect(await step(db)).toBe(1)
  expect(await value(db, `select count(*)::int from outbox.scheduled`)).toBe(2)
  await holds(db, 'I1', 'I3', 'I5')
})

/** A client of the test as a pool hands it out. */
function asPooled(client: import('pg').Client) {
  return Object.assign(client, { release: () => {} })
}

export const xidsBackwards = defineCase('restore-guard: smaller xids', async ({ db, engine }) => {
  const { rebase } = await engine.load<Rebase>(modulePath)
  await emitAll(db, ['a'])
  await step(db)
  const ahead = `${(await nextXid(db)) + 1_000_000n}`
  await db.query(`update outbox.step set snapshot = ($1 || ':' || $1 || ':')::pg_snapshot`, [ahead])
  await emitAll(db, ['b'])
  expect(await sqlState(step(db))).toBe('HM015')
  expect(await rebase(db.pool)).toMatchObject({ numbered: 1 })
  expect(await logged(db)).toEqual(['a', 'b'])
  await holds(db, 'I1', 'I5')
})

export const openWindow = defineCase('restore-guard: an unfinished window', async (env) => {
  const { db, engine } = env
  const { rebase } = await engine.load<Rebase>(modulePath)
  const source = await secondCluster()
  await emitAll(source, ['a', 'b', 'c', 'd', 'e'])
  await source.query('select outbox.sequence(2)')
  await restore(source, db.pool)
  expect(await rebase(db.pool)).toMatchObject({ numbered: 3 })
  expect(await logged(db)).toEqual(['a', 'b', 'c', 'd', 'e'])
  await holds(db, 'I1', 'I3', 'I5')
})

export const restoreOvertaken = defineCase('restore-overtaken', async ({ db, engine }) => {
  const { rebase } = await engine.load<Rebase>(modulePath)
  const source = await secondCluster()
  await runAhead(source, db, 4_000)
  await aLifeBefore(source)
  await restore(source, db.pool)
  await rebase(db.pool)
  const reached = BigInt(await value(db, 'select max(xid::text::bigint)::text from outbox.event'))
  expect(await nextXid(db)).toBeLessThan(reached)
  for (let n = 0; (await nextXid(db)) <= reached + 10n; n++) {
    await burnXids(db, 500)
    await emitAll(db, [`new-${n}`])
    const numbered = await step(db).catch(String)
    expect(numbered, 'numbered while the counter passes restored xids').toBe(1)
  }
  expect((await logged(db)).filter((id) => !id.startsWith('new'))).toEqual(['a', 'b', 'c', 'd', 'e'])
  await holds(db, 'I1', 'I3', 'I5')
})

export const sequenceBehindFence = defineCase('sequence-behind-fence', async ({ db, engine }) => {
  const { rebase } = await engine.load<Rebase>(modulePath)
  const source = await secondCluster()
  // Id 1 is burnt: a place below the fence where something new would fit.
  await source.query(`begin; select outbox.emit('doc.updated', 'doc', 'burnt'); rollback`)
  await aLifeBefore(source)
  await restore(source, db.pool, { sequences: false })
  expect(await rebase(db.pool)).toMatchObject({ numbered: 3, fencedId: 8n })
  const writer = await session(db, 'writer')
  expect(await emitAlone(writer, 'f'), 'the sequence was moved').toBe(9)
  await db.query(`select outbox.add_partition('event', 5000000, 6000000)`)
  await db.query(`select setval('outbox.event_id', 1, false)`)
  expect(await sqlState(step(db)), 'a step behind the fence').toBe('HM015')
  expect(await sqlState(emitAlone(writer, 'lost')), 'an id below the fence').toBe('23514')
  await writer.rollback()
  expect(await rebase(db.pool)).toMatchObject({ numbered: 1, fencedId: 9n })
  expect(await emitAlone(writer, 'g')).toBe(10)
  expect(await step(db)).toBe(1)
  expect(await logged(db)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  await holds(db, 'I1', 'I3', 'I5')
})

export const otherLanes = defineCase('restore-guard: another number of lanes', async (env) => {
  const { db, engine } = env
  const { rebase } = await engine.load<Rebase>(modulePath)
  const source = await secondCluster()
  await aLifeBefore(source)
  await db.query('update outbox.setting set lanes = 5')
  await restore(source, db.pool, { without: ['setting'] })
  expect(await codeOf(rebase(db.pool))).toBe('HMD_REBASE_LANES')
  expect(await logged(db)).toEqual(['a', 'b'])
  await db.query('update outbox.setting set lanes = 16')
  expect(await rebase(db.pool)).toMatchObject({ numbered: 3 })
})

export const cases = [restoreGuard, xidsBackwards, openWindow, restoreOvertaken, sequenceBehindFence, otherLanes]
