// Managed PostgreSQL: an ordinary owner, and none of the looks that such services refuse.

import type pg from 'pg'
import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import { freshDatabase, openPool } from './fresh-database.ts'

type Db = Env['db']
type Outbox = ReturnType<Env['engine']['createOutbox']>

/** The control file, the write-ahead log, other sessions' activity and locks, slots, prepared transactions. */
const REVOKE = `do $$
declare
  f regprocedure;
begin
  for f in select p.oid::regprocedure from pg_proc p
            where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f'
              and (p.proname ~ '^pg_(control_|current_wal_|walfile_|last_wal_|ls_|read_|stat_file|split_walfile)'
                   or p.proname ~ '^pg_stat_get_(activity|backend|wal|db|replication|progress)'
                   or p.proname in ('pg_lock_status', 'pg_prepared_xact', 'pg_get_replication_slots',
                     'pg_blocking_pids', 'pg_terminate_backend', 'pg_cancel_backend')) loop
    execute format('revoke execute on function %s from public', f);
  end loop;
end $$`

/** Everything in the schema belongs to an ordinary role from here on, as if it had run the migrations. */
const HAND_OVER = `do $$
declare
  x record;
begin
  execute 'alter schema outbox owner to ordinary';
  for x in select c.oid::regclass as name from pg_class c
            where c.relnamespace = 'outbox'::regnamespace and c.relkind in ('r', 'p', 'v', 'S')
              and not exists (select from pg_depend d where d.objid = c.oid and c.relkind = 'S' and d.deptype = 'i') loop
    execute format('alter table %s owner to ordinary', x.name);
  end loop;
  for x in select p.oid::regprocedure as name from pg_proc p where p.pronamespace = 'outbox'::regnamespace loop
    execute format('alter routine %s owner to ordinary', x.name);
  end loop;
end $$`

/** A pool of somebody who may nothing but own a schema. */
async function ordinary(db: Db, name = db.name): Promise<pg.Pool> {
  await db.query(`do $$ begin create role ordinary login; exception when duplicate_object then null; end $$`)
  await db.admin.query(`grant create on database ${name} to ordinary`)
  return openPool(db, name, 'ordinary')
}

export const nothingPrivileged = defineCase('nothing-privileged', async ({ db, engine }) => {
  const pool = await ordinary(db)
  await db.query(REVOKE)
  await db.query(HAND_OVER)
  const { rejected, delivered } = await engine.load<typeof import('../../../src/sinks/outcome.ts')>('sinks/outcome.ts')
  let refusing = true
  const seen: string[] = []
  const errors: string[] = []
  const outbox = engine.createOutbox({
    pool,
    listener: { error: ({ during, error }) => void errors.push(`${during}: ${(error as Error).message}`) },
  })
  outbox.subscribe('all', {
    revision: 1,
    types: ['*'],
    from: 'beginning',
    sink: {
      name: 'choosy',
      deliver: async (events) =>
        events.map(({ aggregateId }) => {
          if (refusing && aggregateId === 'bad') return rejected({ message: 'no' })
          seen.push(aggregateId)
          return delivered()
        }),
    },
  })
  await outbox.migrate()
  await outbox.transaction(async (_tx, emit) => {
    for (const id of ['good', 'bad']) emit({ type: 'doc.changed', aggregate: ['doc', id] })
  })
  await outbox.runOnce({ upkeep: false })
  expect(seen, 'delivered to an ordinary owner').toEqual(['good'])
  expect((await outbox.deadLetters()).map(({ aggregate }) => aggregate[1])).toEqual(['bad'])
  refusing = false
  expect(await outbox.retry('all', { state: 'dead' }, { actor: 'me' })).toMatchObject({ retried: 1 })
  await outbox.runOnce({ upkeep: false })
  await outbox.journeys.replay('all', { from: 1n, actor: 'me', reason: 'again' })
  await outbox.runOnce({ upkeep: false })
  expect(seen.sort(), 'sent again').toEqual(['bad', 'bad', 'good', 'good'])
  await outbox.runOnce({ retention: { eventDays: 0 } })
  await outbox.stats()
  await pool.query(`select outbox.long_held(array['outbox.log'::regclass::oid]), outbox.holders()`)
  await goesOnAfterRebase(engine, pool, outbox)
  expect(seen.length, 'after rebase').toBe(5)
  expect(errors, 'told by the worker').toEqual([])
  await doctorTells(engine, pool)
})

/** A timeline that was never seen starts no epoch by itself. */
async function goesOnAfterRebase(engine: Env['engine'], pool: pg.Pool, outbox: Outbox): Promise<void> {
  const { rebase } = await engine.load<typeof import('../../../src/desk/rebase.ts')>('desk/rebase.ts')
  const { epoch } = await rebase(pool, { rolledBack: true })
  await pool.query(`select outbox.emit('doc.changed', 'doc', 'late')`)
  await outbox.runOnce({ upkeep: false })
  const { rows } = await pool.query('select epoch from outbox.step order by id desc limit 1')
  expect(rows, 'the epoch rebase began').toEqual([{ epoch }])
}

/** Nothing fails, and what cannot be seen is said. */
async function doctorTells(engine: Env['engine'], pool: pg.Pool): Promise<void> {
  const { doctor } = await engine.load<typeof import('../../../src/desk/doctor.ts')>('desk/doctor.ts')
  const { ok, checks } = await doctor(pool)
  expect(ok, JSON.stringify(checks.filter(({ level }) => level === 'fail'))).toBe(true)
  const identity = checks.find(({ name }) => name === 'identity')
  expect(identity, 'what doctor says').toMatchObject({
    level: 'warn',
    says: expect.stringMatching(/pg_control_system.*pg_current_wal_lsn.*failover/s),
  })
}

/** The schema is made by such an owner, in a database that has none yet. */
export const migratesUnprivileged = defineCase('nothing-privileged: migrate', async ({ db, engine }) => {
  const name = await freshDatabase(db)
  await openPool(db, name).query(REVOKE)
  const pool = await ordinary(db, name)
  await engine.createOutbox({ pool }).migrate()
  await pool.query(`select outbox.emit('doc.changed', 'doc', 'one')`)
  const { rows } = await pool.query('select numbered from outbox.sequence()')
  expect(rows, 'numbered').toEqual([{ numbered: 1 }])
})
