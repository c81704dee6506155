// outbox.lock: one order for everybody, a limit, and an end to waiting.

import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import { endsUnblocked, sqlState, step, value } from './script.ts'

const one = ['doc', 'one'] as const
const two = ['doc', 'two'] as const

async function lockOf({ engine }: Env) {
  return (await engine.load<typeof import('../../../src/flow/emit.ts')>('flow/emit.ts')).lock
}

/** Whoever waits for the first lock holds none of the others, in whichever order it asked. */
export const lockOrder = defineCase('lock-order', async (env) => {
  const { db } = env
  const lock = await lockOf(env)
  const [a, b, c] = [await session(db, 'a'), await session(db, 'b'), await session(db, 'c')]
  const [row] = await db.query(`select outbox.hash('doc', 'one') < outbox.hash('doc', 'two') as sorted`)
  const [first, last] = row?.sorted ? [one, two] : [two, one]
  for (const asked of [
    [first, last],
    [last, first],
  ]) {
    await a.begin()
    await b.begin()
    await c.begin()
    await lock(a.client, [first])
    const waiting = b.startCall((tx) => lock(tx, asked))
    await waiting.blocked(a)
    await endsUnblocked(
      c.startCall((tx) => lock(tx, [last])),
      'the second lock while somebody waits for the first',
    )
    await c.commit()
    await a.commit()
    await waiting.promise
    await b.commit()
  }
  await step(db)
  await holds(db, 'I1', 'I3', 'I5')
})

export const lockLimits = defineCase('lock-order: more than 100 refused', async (env) => {
  const lock = await lockOf(env)
  const a = await session(env.db, 'a')
  const many = Array.from({ length: 101 }, (_, n) => ['doc', n] as const)
  await a.begin()
  await expect(lock(a.client, many)).rejects.toMatchObject({ code: 'HMD_LOCK_LIMIT' })
  await lock(a.client, many.slice(1))
  await a.commit()
  const inSql = `select outbox.lock(array_fill('doc'::text, array[101]), array_fill('x'::text, array[101]))`
  expect(await sqlState(a.run(inSql))).toBe('HM009')
})

export const lockTimeout = defineCase('lock-order: a lock not obtained is reported', async (env) => {
  const { db } = env
  const lock = await lockOf(env)
  const { lockWaitMs } = await env.engine.load<typeof import('../../../src/flow/emit.ts')>('flow/emit.ts')
  expect(lockWaitMs).toBe(10_000)
  const a = await session(db, 'a')
  const b = await session(db, 'b')
  await a.begin()
  await lock(a.client, [one])
  await b.begin()
  await expect(lock(b.client, [one, two], 1)).rejects.toMatchObject({ code: 'HMD_LOCK_TIMEOUT' })
  await b.rollback()
  await a.commit()
  // The caller's own limit is as it was.
  await b.run(`set lock_timeout = '1234ms'`)
  await b.begin()
  await lock(b.client, [one])
  expect(await value(b, `select current_setting('lock_timeout')`)).toBe('1234ms')
  await b.commit()
})
