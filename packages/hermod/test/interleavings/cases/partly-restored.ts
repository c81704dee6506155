// Restores that forgot something, and the ways in which rebase is asked: each gets a clear answer,
// and none loses or doubles an event.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import { restore, runAhead, secondCluster, step } from './restored.ts'
import { aLifeBefore, codeOf, emitAll, modulePath, type Rebase } from './restoring.ts'
import { emit, logged, sqlState, value } from './script.ts'

const epoch = 2n ** 32n

export const onlyEvents = defineCase('partial restore: events alone', async ({ db, engine }) => {
  const { rebase } = await engine.load<Rebase>(modulePath)
  const source = await secondCluster()
  await runAhead(source, db, 2_000)
  await aLifeBefore(source)
  await restore(source, db.pool, { without: ['step', 'log', 'scheduled', 'kind'] })
  expect(await sqlState(step(db))).toBe('HM015')
  expect(await rebase(db.pool)).toMatchObject({ numbered: 5, filed: 2, position: epoch + 5n })
  expect(await logged(db)).toEqual(['a', 'b', 'c', 'd', 'e'])
  await holds(db, 'I1', 'I3', 'I5')
})

export const noSteps = defineCase('partial restore: a log without steps', async (env) => {
  const { db, engine } = env
  const { rebase } = await engine.load<Rebase>(modulePath)
  const source = await secondCluster()
  await aLifeBefore(source)
  await runAhead(db, source, 500)
  await restore(source, db.pool, { without: ['step'] })
  expect(await sqlState(step(db))).toBe('HM015')
  expect(await rebase(db.pool)).toMatchObject({ numbered: 3, filed: 1 })
  expect(await logged(db)).toEqual(['a', 'b', 'c', 'd', 'e'])
  await holds(db, 'I1', 'I3', 'I5')
})

export const noKinds = defineCase('partial restore: a log without its codes', async (env) => {
  const { db, engine } = env
  const { rebase } = await engine.load<Rebase>(modulePath)
  const source = await secondCluster()
  await source.query(`select outbox.emit('mail.sent', 'mail', 'm', '{}')`)
  await aLifeBefore(source)
  await restore(source, db.pool, { without: ['kind'] })
  await rebase(db.pool)
  const kinds = await source.query('select * from outbox.kind order by code')
  expect(await db.query('select * from outbox.kind order by code')).toEqual(kinds)
  await db.query(`update outbox.kind set code = 3 - code`)
  expect(await codeOf(rebase(db.pool))).toBe('HMD_RESTORED')
})

export const noEvents = defineCase('partial restore: a log without events', async (env) => {
  const { db, engine } = env
  const { rebase } = await engine.load<Rebase>(modulePath)
  const source = await secondCluster()
  await aLifeBefore(source)
  const sink = engine.testing.memorySink()
  const outbox = engine.createOutbox({ pool: db.pool })
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  await restore(source, db.pool, { without: ['event', 'scheduled'] })
  expect(await rebase(db.pool), 'nobody waits for them').toMatchObject({ numbered: 0 })
  await outbox.runOnce()
  expect(await value(db, `select count(*)::int from outbox.delivery where state = 'dead'`)).toBe(2)
  await emitAll(db, ['f'])
  await step(db)
  await db.query('delete from outbox.event')
  await db.query(`update outbox.step set system_identifier = 1`)
  const refused = await rebase(db.pool).catch((error) => error)
  expect(refused).toMatchObject({ code: 'HMD_RESTORED' })
  expect(refused.message).toContain('1 events that are still to be delivered')
  expect(refused.fix).toContain('--accept-missing')
  expect(await rebase(db.pool, { acceptMissing: true })).toMatchObject({ missing: 1 })
  expect(await step(db)).toBe(0)
})

export const retired = defineCase('restore after retention: nothing old returns', async (env) => {
  const { db, engine } = env
  const { rebase } = await engine.load<Rebase>(modulePath)
  const source = await secondCluster()
  await emitAll(source, ['a', 'b'])
  await source.query('select outbox.sequence()')
  await emitAll(source, ['c'])
  await source.query('select outbox.sequence()')
  await source.query('delete from outbox.log where pos <= 2')
  await emitAll(source, ['d'])
  await restore(source, db.pool)
  expect(await rebase(db.pool)).toMatchObject({ numbered: 1, retired: 2 })
  expect(await logged(db)).toEqual(['c', 'd'])
})

export const rolledBack = defineCase('rolled back by hand', async ({ db, engine }) => {
  const { rebase } = await engine.load<Rebase>(modulePath)
  const sink = engine.testing.memorySink()
  const outbox = engine.createOutbox({ pool: db.pool })
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  await emitAll(db, ['a'])
  await outbox.runOnce()
  const writer = await session(db, 'writer')
  await writer.begin()
  await emit(writer, 'b')
  const first = await rebase(db.pool, { rolledBack: true, requestId: 'r1', actor: 'ada' })
  expect(first).toMatchObject({ epoch: 1, position: epoch, numbered: 0, repeated: false })
  const again = await rebase(db.pool, { rolledBack: true, requestId: 'r1', actor: 'ada' })
  expect(again).toEqual({ ...first, repeated: true })
  await writer.commit()
  await outbox.runOnce()
  expect(sink.accepted.map(({ position }) => position)).toEqual([1n, epoch + 1n])
  expect(await value(db, 'select bool_and(fence >= $1) from outbox.lane', [epoch])).toBe(true)
  expect(await db.query('select request_id, actor, action from outbox.audit')).toEqual([
    { request_id: 'r1', actor: 'ada', action: 'rolled-back' },
  ])
  await holds(db, 'I1', 'I3', 'I5', 'I8')
})

export const leasesVoid = defineCase('rebase voids leases and is recorded once', async (env) => {
  const { db, engine } = env
  const { rebase } = await engine.load<Rebase>(modulePath)
  const { claim } = await engine.load<typeof import('../../../src/flow/claim.ts')>('flow/claim.ts')
  const outbox = engine.createOutbox({ pool: db.pool })
  const sink = engine.testing.memorySink()
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  await outbox.runOnce()
  await emitAll(db, ['a'])
  await step(db)
  const mine = { name: 'all', revision: 1 }
  const [held] = await claim(db.pool, mine, 'old', { lanesMax: 16, leaseMs: 60_000, callMs: null })
  const request = { requestId: 'r2', actor: 'ada', reason: 'moved to a new machine' }
  expect(await rebase(db.pool, request)).toMatchObject({ numbered: 0, repeated: false })
  expect(await rebase(db.pool, request)).toMatchObject({ numbered: 0, repeated: true })
  const [taken] = await claim(db.pool, mine, 'new', { lanesMax: 16, leaseMs: 60_000, callMs: null })
  expect(taken?.lane).toBe(held?.lane)
  expect(taken?.fence).toBe(epoch + 1n)
  const rows = await db.query('select actor, action, reason, count::int from outbox.audit')
  expect(rows).toEqual([{ actor: 'ada', action: 'rebase', reason: 'moved to a new machine', count: 0 }])
})

export const cases = [onlyEvents, noSteps, noKinds, noEvents, retired, rolledBack, leasesVoid]
