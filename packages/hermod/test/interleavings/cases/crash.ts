// Across crashes of the server: prepared transactions, the step that was answered, standbys.

import pg from 'pg'
import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import { emit, emitAlone, logged, step, value } from './script.ts'

async function crash({ db }: Env): Promise<void> {
  await db.postgres.stop('immediate')
  await db.postgres.start()
}

async function prepared(env: Env, meanwhile: () => Promise<void>): Promise<void> {
  const { db } = env
  const t1 = await session(db, 't1')
  const t2 = await session(db, 't2')
  await t1.begin()
  await emit(t1, 'prepared')
  await t1.run(`prepare transaction 'hermod_case'`)
  await emitAlone(t2, 'other')
  expect(await step(db)).toBe(1)
  await meanwhile()
  const t3 = await session(db, 't3')
  await emitAlone(t3, 'another')
  expect(await step(db), 'events of others').toBe(1)
  await t3.run(`commit prepared 'hermod_case'`)
  expect(await step(db)).toBe(1)
  expect(await step(db)).toBe(0)
  expect(await logged(db)).toEqual(['other', 'another', 'prepared'])
  await holds(db, 'I1', 'I3', 'I5')
}

export const preparedCase = defineCase('prepared', (env) => prepared(env, async () => {}))

export const preparedCrash = defineCase('prepared: across a crash in between', (env) => prepared(env, () => crash(env)))

/** WAL is written at leisure here: what a step has told must not depend on it. */
export const stepThenCrash = defineCase('step-then-crash', async (env) => {
  const { db } = env
  const numbering = `select l.pos, l.lane, l.event_id, e.aggregate_id, e.payload::text
    from outbox.log l join outbox.event e on e.id = l.event_id order by l.pos`
  const told: unknown[] = []
  for (const round of [1, 2]) {
    const producer = await session(db, 'producer')
    await producer.run('set synchronous_commit = off')
    for (const n of [1, 2, 3]) await emitAlone(producer, `doc ${n}`, round)
    expect(await step(db)).toBe(3)
    const rows = await db.query(numbering)
    await crash(env)
    expect(await db.query(numbering), 'what a step told before the crash').toEqual(rows)
    told.push(...rows.slice(told.length))
  }
  expect(await step(db)).toBe(0)
  expect(await db.query(numbering)).toEqual(told)
  await holds(db, 'I1', 'I3', 'I5')
})

export const onStandby = defineCase('isolation: a step on a standby', async (env) => {
  const { db, engine } = env
  const { sequence } = await engine.load<typeof import('../../../src/flow/sequence.ts')>('flow/sequence.ts')
  const { copyCluster } = await engine.load<typeof import('../../../src/embedded/index.ts')>('embedded/index.ts')
  await emitAlone(await session(db, 'producer'), 'a')
  await db.postgres.stop()
  const standby = await copyCluster(db.postgres, { standby: { primaryUrl: db.postgres.url() } })
  try {
    await db.postgres.start()
    const client = new pg.Client({ connectionString: standby.url(db.name) })
    await client.connect()
    await expect(sequence(client as never)).rejects.toMatchObject({ code: 'HMD_STANDBY' })
    await client.end()
  } finally {
    await standby.destroy()
  }
  expect(await value(db, 'select count(*)::int from outbox.log')).toBe(0)
  expect(await step(db)).toBe(1)
  await holds(db, 'I1', 'I3', 'I5')
})
