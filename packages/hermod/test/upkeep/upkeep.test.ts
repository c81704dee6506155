// The rest of upkeep: pruning, statistics, sizes of leaves, turns, the worker that runs it.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect } from 'vitest'
import { defineCase, exerciseCases } from '../../../../test/support/case.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { workerOptions } from '../../src/options.ts'
import { dayMs, emitMany, leafName, numberAll, setup, tinyLeaves } from './cases/leaves.ts'

const small = defineCase('small leftovers go when they are old, not before', async (env) => {
  const { db } = env
  const { turn, clock } = await setup(env)
  const left = `select (select count(*)::int from outbox.idempotency) as keys, (select count(*)::int from outbox.inbox) as inbox,
    (select count(*)::int from outbox.worker) as workers, (select count(*)::int from outbox.step) as steps`
  await db.query(
    `select outbox.emit('a.b', 'a', n::text, '{}', null, null, 'key' || n) from generate_series(1, 2500) n`,
  )
  await db.query(`insert into outbox.inbox (consumer, message_id) select 'c', n::text from generate_series(1, 5) n`)
  await db.query(`insert into outbox.worker select 'w', 'w', 'h', 1, '1', '{}', false, outbox.clock(), outbox.clock()`)
  for (let n = 0; n < 3; n++) {
    await numberAll(db)
    await emitMany(db, 1)
    await clock.advance(2000)
  }
  await turn()
  expect((await db.query(left))[0]).toEqual({ keys: 2500, inbox: 5, workers: 1, steps: 3 })
  await clock.advance(9 * dayMs)
  await turn()
  expect((await db.query(left))[0], 'the newest step stays').toEqual({
    keys: 0,
    inbox: 5,
    workers: 0,
    steps: 1,
  })
  await clock.advance(30 * dayMs)
  await turn()
  expect((await db.query(left))[0]).toMatchObject({ inbox: 0, steps: 1 })
})

const cursors = defineCase('of the cursors of a lane only the newest is kept', async (env) => {
  const { db } = env
  const { turn, outbox, sink } = await setup(env)
  outbox.subscribe('all', { revision: 1, types: ['*'], sink })
  await outbox.runOnce({ upkeep: false })
  for (const table of ['cursor', 'shadow']) {
    await db.query(
      `insert into outbox.${table} select 'all', 3, f, p from (values (1, 5), (2, 4), (2, 9), (1, 99)) v(f, p)`,
    )
  }
  await turn()
  const kept = await db.query(`select fence::int, pos::int from outbox.cursor where lane = 3`)
  expect(kept).toEqual([{ fence: 2, pos: 9 }])
  expect(await db.query(`select fence::int, pos::int from outbox.shadow`)).toEqual([{ fence: 2, pos: 9 }])
  expect((await db.query('select from outbox.cursor')).length).toBe(16)
})

const attempts = defineCase('attempts go after their own time, whole leaves at once', async (env) => {
  const { db } = env
  const { turn, clock } = await setup(env, { attemptDays: 2 })
  await tinyLeaves(db)
  await db.query(`insert into outbox.attempt (call, subscription, lane, from_pos, to_pos, started_at, duration_ms, worker, outcome)
    select n, 's', 0, 0, n, outbox.clock(), 1, 'w', 'delivered' from generate_series(1, 25) n`)
  await turn()
  await clock.advance(3 * dayMs)
  const { emptied } = await turn()
  expect(emptied).toEqual([leafName('attempt', 1), leafName('attempt', 11)])
})

const frozen = defineCase('a closed leaf is frozen once', async (env) => {
  const { db } = env
  const { turn } = await setup(env)
  await tinyLeaves(db)
  await emitMany(db, 15)
  await numberAll(db)
  await turn()
  const state = `select s.vacuum_count::int as vacuums, pg_visibility.age as age from pg_stat_user_tables s
    cross join lateral (select age(c.relfrozenxid)::int as age from pg_class c where c.oid = s.relid) pg_visibility
    where s.relname = $1`
  const look = async () => (await db.query(state, [leafName('event', 1)]))[0]
  await eventually(async () => (await look())?.vacuums === 1)
  const first = await look()
  await turn()
  expect((await look())?.vacuums).toBe(first?.vacuums)
  expect(await db.query(`select name from outbox.leaf where frozen_at is not null order by 1`)).toEqual([
    { name: leafName('event', 1) },
    { name: leafName('log', 1) },
  ])
})

const sizes = defineCase('leaves are sized by the measured rate', async (env) => {
  const { db } = env
  const { clock } = await setup(env)
  const size = async (days: number) => {
    const [row] = await db.query('select outbox.leaf_rows($1, $2)::int as rows', ['log', days])
    return row?.rows
  }
  expect(await size(7), 'nothing measured yet').toBe(1_000_000)
  await emitMany(db, 2_000)
  await clock.advance(2 * 3_600_000)
  expect(await size(7), '1,000 an hour: the smallest').toBe(100_000)
  await db.query(`select setval('outbox.event_id', 999000)`)
  const rows = Number(await size(7))
  expect(rows, '500,000 an hour for a week in 24 leaves').toBe(3_500_000)
  expect((500_000 * 24 * 7) / rows).toBeLessThanOrEqual(24)
  await db.query(`select setval('outbox.event_id', 833333)`)
  expect(Number(await size(7)) / 10_000_000, 'days of ten million events in one leaf').toBeLessThan(1)
})

const turns = defineCase('one turn per piece and interval, over all workers', async (env) => {
  const { db } = env
  const { clock } = await setup(env)
  const turn = async () => (await db.query(`select outbox.upkeep_turn('prune', 10000) as mine`))[0]?.mine
  const all = await Promise.all([turn(), turn(), turn(), turn()])
  expect(all.filter(Boolean).length).toBe(1)
  expect(await turn()).toBe(false)
  await clock.advance(10_000)
  expect(await turn()).toBe(true)
})

const worker = defineCase('a worker runs it, and stops it', async ({ db, engine }) => {
  const outbox = engine.createOutbox({ pool: db.pool })
  outbox.subscribe('all', { revision: 1, types: ['*'], sink: engine.testing.memorySink() })
  const running = await outbox.start()
  await eventually(async () => (await db.query('select from outbox.upkeep')).length === 5)
  await running.stop()
  const leaves = await db.query(`select from outbox.partition where parent = 'event' and to_value is not null`)
  expect(leaves.length).toBeGreaterThanOrEqual(2)
})

const asWorker = defineCase('the worker role may do all of it', async (env) => {
  const { db, engine } = env
  const { clock, outbox, sink } = await setup(env)
  const roles = await engine.load<typeof import('../../src/desk/roles.ts')>('desk/roles.ts')
  const { Upkeep } = await engine.load<typeof import('../../src/worker/upkeep/upkeep.ts')>('worker/upkeep/upkeep.ts')
  await tinyLeaves(db)
  outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
  await emitMany(db, 35)
  await engine.testing.drain(outbox)
  await clock.advance(8 * dayMs)
  const prefix = `upkeep_${process.pid}`
  const { worker: role } = await roles.installRoles(db.pool, { prefix })
  const pool = new pg.Pool({ connectionString: db.url, options: `-c role=${role}` })
  const folder = await mkdtemp(join(tmpdir(), 'hermod-test-'))
  const errors: unknown[] = []
  const options = workerOptions({ retention: { archive: { folder } } })
  const upkeep = new Upkeep(pool, options, { error: ({ error }) => void errors.push(error) })
  await upkeep.once()
  expect(errors).toEqual([])
  expect(upkeep.last?.emptied).toContain(leafName('event', 1))
  await upkeep.once()
  expect(upkeep.last?.dropped).toContain(leafName('event', 1))
  await pool.end()
  await rm(folder, { recursive: true })
  for (const name of ['producer', 'worker', 'reader', 'admin'])
    await db.query(`drop owned by ${prefix}_${name}; drop role ${prefix}_${name}`)
})

exerciseCases([asWorker, small, cursors, attempts, frozen, sizes, turns, worker], {
  ownCluster: false,
})
