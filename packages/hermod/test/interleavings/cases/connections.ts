// Connections that end or go mute: a worker neither dies of it nor waits for ever.

import pg from 'pg'
import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { muteProxy } from '../../../../../test/support/mute-proxy.ts'
import { session } from '../../../../../test/support/session.ts'
import type { OutboxEvent } from '../../../src/event.ts'
import type { OutboxOptions, WorkerOptions } from '../../../src/options.ts'
import { label, type Stage, stage } from './stage.ts'

const leaseMs = 9_000
const connectionsMax = 20
/** A worker asks on so many at once, at most. The rest of a pool that went mute must not be tried one by one. */
const askedMax = 10

function poolOn(env: Env, connectionString: string): pg.Pool {
  // Nothing but the engine takes a connection out of the pool.
  const config = { max: connectionsMax, idleTimeoutMillis: 0, application_name: 'hermod-worker' }
  const pool = new pg.Pool({ connectionString, ...config })
  env.db.closeAtEnd(() => pool.end())
  return pool
}

function recording(s: Stage, pool: pg.Pool, given: { sink?: (events: readonly OutboxEvent[]) => Promise<void> } = {}) {
  const got: string[] = []
  const errors: string[] = []
  const sink = async (events: readonly OutboxEvent[]) => {
    await given.sink?.(events)
    got.push(...events.map(label))
  }
  const listener = { error: ({ during }: { during: string }) => void errors.push(during) }
  const outbox = s.env.engine.createOutbox({ pool, listener } as unknown as OutboxOptions)
  outbox.subscribe('all', { revision: 1, types: ['*'], from: 'beginning', sink, callMs: 1_000 })
  return { outbox, got, errors }
}

const options: WorkerOptions = { upkeep: false, pollMs: 50, busyPollMs: 5, concurrency: 2, leaseMs }

/** Every connection of the pool goes mute, busy or idle; new ones work. */
export const muteConnection = defineCase('mute-connection', async (env) => {
  const s = await stage(env)
  const { statementMs } = await env.engine.load<typeof import('../../../src/bounded.ts')>('bounded.ts')
  expect(statementMs(leaseMs), 'a mute connection is noticed within a third of the lease').toBeLessThan(leaseMs / 3)
  const proxy = await muteProxy(env.db.url)
  env.db.closeAtEnd(() => proxy.close())
  const pool = poolOn(env, proxy.url)
  const { outbox, got, errors } = recording(s, pool)
  const worker = await outbox.start(options)
  // As many as the pool may have: each of them was used by the worker and lies idle.
  await eventually(async () => {
    const many = Array.from({ length: connectionsMax }, () => outbox.stats())
    await Promise.all(many)
    return pool.totalCount === connectionsMax
  })
  await s.emit(['before'])
  await eventually(async () => got.length === 1 && (await s.open()) === 0)
  proxy.mute()
  await s.emit(['after'])
  await eventually(() => got.includes('after@1') || proxy.asked > askedMax, {
    timeoutMs: 30_000,
    what: 'delivered over new connections',
  })
  expect(proxy.asked, 'mute connections that were asked').toBeLessThanOrEqual(askedMax)
  expect(errors.length, 'it is told').toBeGreaterThan(0)
  await s.emit(['later'])
  await eventually(() => got.includes('later@1'))
  await worker.stop()
  expect(got, 'delivered once each').toEqual(['before@1', 'after@1', 'later@1'])
})

/** As in a program that hears nothing of its pool: the server ends connections that lie idle. */
export const noPoolHandler = defineCase('no-pool-handler', async (env) => {
  const s = await stage(env)
  const pool = poolOn(env, env.db.url)
  const { outbox, got, errors } = recording(s, pool)
  expect(pool.listenerCount('error'), 'somebody hears the errors of the pool').toBe(1)
  env.engine.createOutbox({ pool } as unknown as OutboxOptions)
  env.engine.createOutbox({
    pool,
    listener: { error: ({ during }: { during: string }) => void errors.push(during) },
  } as never)
  expect(pool.listenerCount('error'), 'once per pool').toBe(1)
  const worker = await outbox.start(options)
  await eventually(async () => {
    await s.db.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'hermod-worker' and state = 'idle' and datname = current_database()`,
    )
    return errors.includes('idle connection')
  })
  await s.emit(['a'])
  await eventually(() => got.length === 1)
  await worker.stop()
  expect(got).toEqual(['a@1'])
})

/**
 * Somebody locks the row of a lane and forgets it. Only this lane waits: the others of the same loop go on. No statement that was
 * given up stays behind as a server process, and what was delivered before is settled without a second call.
 */
export const forgottenLock = defineCase('forgotten-lane-lock', async (env) => {
  const s = await stage(env)
  const pool = poolOn(env, env.db.url)
  const { outbox, got } = recording(s, pool)
  const [locked] = await s.inLane(3, 1)
  const [other] = await s.inLane(5, 1)
  const worker = await outbox.start({ ...options, concurrency: 1 })
  await s.emit([locked as string, other as string])
  await eventually(async () => got.length === 2 && (await s.open()) === 0)
  const holder = await session(env.db, 'holder')
  await holder.begin()
  await holder.run(`select from outbox.lane where subscription = 'all' and lane = 3 for update`)
  await s.emit([locked as string])
  await eventually(() => got.includes(`${locked}@2`))
  const processes = async () => {
    const [row] = await s.db.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity where application_name = 'hermod-worker' and datname = current_database()`,
    )
    return row?.n ?? 0
  }
  // Long enough for two statements to be given up, shorter than the lease.
  const untilMs = performance.now() + leaseMs / 2
  for (let v = 2; performance.now() < untilMs; v++) {
    await s.emit([other as string])
    await eventually(() => got.includes(`${other}@${v}`), {
      timeoutMs: 15_000,
      what: 'another lane of the loop goes on',
    })
    expect(await processes(), 'server processes that nobody uses any more').toBeLessThanOrEqual(pool.totalCount)
  }
  await holder.commit()
  await eventually(async () => (await s.open()) === 0, { timeoutMs: 15_000, what: 'everything settled' })
  await worker.stop()
  expect(
    got.filter((one) => one.startsWith(`${locked}@`)),
    'sent once each',
  ).toEqual([`${locked}@1`, `${locked}@2`])
})

/** A statement that takes longer than its limit ends on the server too: nobody hears its answer. */
export const overlongStatement = defineCase('overlong-statement', async (env) => {
  const pool = poolOn(env, env.db.url)
  const { bounded } = await env.engine.load<typeof import('../../../src/bounded.ts')>('bounded.ts')
  const db = bounded(pool as never, 100)
  for (let n = 0; n < 3; n++) await expect(db.query('select pg_sleep(60)')).rejects.toMatchObject({ code: 'ETIMEDOUT' })
  const left = () =>
    env.db.query(`select from pg_stat_activity where query = 'select pg_sleep(60)' and datname = current_database()`)
  await eventually(async () => (await left()).length === 0, { what: 'the statements to end' })
})
