// Who may do what in the database: the matrix of roles and objects as the catalogue has it, what a
// producer tries and is refused, and that no superuser is needed for anything.

import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { withDatabase } from '../../../../test/support/template.ts'
import { doctor } from '../../src/desk/doctor.ts'
import { rebase } from '../../src/desk/rebase.ts'
import { installRoles } from '../../src/desk/roles.ts'
import { createOutbox, migrate } from '../../src/index.ts'
import { drain, memorySink } from '../../src/testing/index.ts'
import { roleMatrix } from './role-matrix.ts'

const db = useDatabase({ ownCluster: true, empty: true })

/** A pool that logs in as `user`, ended with the file. */
function as(user: string): pg.Pool {
  const url = new URL(withDatabase(db.url, db.name))
  url.username = user
  const pool = new pg.Pool({ connectionString: url.href, max: 6 })
  pool.on('error', () => {})
  db.closeAtEnd(() => pool.end())
  return pool
}

const EVENT = `select outbox.emit('doc.updated', 'doc', '1', '{"secret": true}')`
let owner: pg.Pool

/** A plain owner, and one account for each role. */
beforeAll(async () => {
  await db.query(`create role plain login createrole`)
  await db.query(`grant create on database ${db.name} to plain`)
  await db.query(`revoke execute on function pg_control_system() from public`)
  owner = as('plain')
  await migrate(owner)
  const roles = await installRoles(owner)
  for (const [name, role] of Object.entries(roles)) {
    await db.query(`create role app_${name} login; grant ${role} to app_${name}`)
  }
  await db.query(`create role stranger login`)
})

describe('the catalogue', () => {
  it('has the roles and objects of the checked-in matrix', async () => {
    await expect(await roleMatrix(owner)).toMatchFileSnapshot('./role-matrix.txt')
  })

  it('gives nothing to PUBLIC', async () => {
    const rows = await db.query(`
      select c.oid::regclass::text as object from pg_class c cross join lateral aclexplode(c.relacl) a
       where c.relnamespace = 'outbox'::regnamespace and a.grantee = 0
      union all
      select p.oid::regprocedure::text from pg_proc p
       cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
       where p.pronamespace = 'outbox'::regnamespace and a.grantee = 0
      union all
      select n.nspname from pg_namespace n cross join lateral aclexplode(n.nspacl) a
       where n.nspname = 'outbox' and a.grantee = 0`)
    expect(rows).toEqual([])
  })

  it('lets every SECURITY DEFINER function look in pg_catalog only, pg_temp last', async () => {
    const rows = await db.query(`
      select p.proname as name, (select split_part(s, '=', 2) from unnest(p.proconfig) s
               where s like 'search_path=%') as path
        from pg_proc p where p.pronamespace = 'outbox'::regnamespace and p.prosecdef`)
    expect(rows.length).toBeGreaterThan(5)
    expect(rows.filter(({ path }) => path !== 'pg_catalog, pg_temp')).toEqual([])
  })

  it('takes no SQL text: functions that execute text quote what they put into it', async () => {
    const rows = await db.query(`
      select p.proname as name from pg_proc p where p.pronamespace = 'outbox'::regnamespace
         and p.prosrc ~* '\\mexecute\\s+(?!format\\(|function |on )'`)
    expect(rows).toEqual([])
  })
})

describe('a producer', () => {
  let producer: pg.Pool
  beforeAll(() => {
    producer = as('app_producer')
  })

  it('emits, by SQL and by the library', async () => {
    await producer.query(EVENT)
    const outbox = createOutbox({ pool: producer })
    const event = { type: 'doc.updated', aggregate: ['doc', '2'], payload: { n: 1 } } as const
    await outbox.transaction(async (tx) => {
      await outbox.lock(tx, [['doc', '2']])
      await outbox.emit(tx, event)
      await outbox.emit(tx, [event, { ...event, key: 'k-1' }])
    })
  })

  const columns = '(type, aggregate_type, aggregate_id, payload, bytes'
  const values = `('doc.updated', 'doc', '1', '{}', 2`
  it.each([
    ['an insert', `insert into outbox.event ${columns}) values ${values})`],
    ['its own xid', `insert into outbox.event ${columns}, xid) values ${values}, '3')`],
    ['OVERRIDING', `insert into outbox.event ${columns}, id) overriding system value values ${values}, 1)`],
    ['an insert into a leaf', `insert into outbox.event_default ${columns}) values ${values})`],
    ['an update', `update outbox.event set payload = '{}'`],
    ['a delete', 'delete from outbox.event'],
    ['reading payloads', 'select payload from outbox.event'],
    ['reading payloads in a leaf', 'select payload from outbox.event_0000000000000000001'],
    ['counting', 'select count(*) from outbox.event'],
    ['the sequence', `select nextval('outbox.event_id')`],
    ['moving the sequence', `select setval('outbox.event_id', 1)`],
    ['the log', 'select * from outbox.log'],
    ['a step', 'select outbox.sequence()'],
    ['a claim', `select outbox.claim('all', 1, 'me', 1, 1000)`],
    ['a rebase', `select outbox.rebase('r', 'me', null)`],
    ['other keys', 'select key from outbox.idempotency'],
    ['a table in the schema', 'create table outbox.mine (n int)'],
    [
      'another clock',
      `create or replace function outbox.clock() returns timestamptz language sql
        return now()`,
    ],
  ])('is refused %s', async (_, sql) => {
    await expect(producer.query(sql)).rejects.toMatchObject({ code: '42501' })
  })

  it('cannot shadow anything in pg_temp', async () => {
    const client = await producer.connect()
    try {
      await client.query(`create temp table event (like pg_class)`)
      await client.query(`create temp table idempotency (key text, event_id bigint, hash bytea)`)
      await client.query(`create function pg_temp.octet_length(text) returns int language plpgsql
        as $$ begin raise exception 'shadowed as %', current_user; end $$`)
      await client.query(`create domain pg_temp.json as text check (value = 'shadowed')`)
      await client.query(`set search_path = pg_temp, pg_catalog, outbox`)
      await client.query(EVENT)
      await client.query(`select outbox.emit('doc.updated', 'doc', '3', '{}', null, null, 'k-2')`)
      expect((await client.query('select from pg_temp.event')).rowCount).toBe(0)
    } finally {
      client.release(true)
    }
  })
})

describe('the other roles', () => {
  it('a worker numbers, claims and delivers, and cannot emit or rewrite', async () => {
    const pool = as('app_worker')
    const sink = memorySink()
    const outbox = createOutbox({ pool })
    outbox.subscribe('all', { revision: 1, types: ['*'], sink, from: 'beginning' })
    await outbox.runOnce()
    expect(sink.accepted.length).toBeGreaterThan(0)
    const worker = await outbox.start()
    await worker.stop()
    const refused = [EVENT, 'delete from outbox.event', 'update outbox.log set lane = 1']
    for (const sql of [...refused, `select outbox.rebase('r', 'me', null)`]) {
      await expect(pool.query(sql), sql).rejects.toMatchObject({ code: '42501' })
    }
  })

  it('a reader sees states and no payload', async () => {
    const pool = as('app_reader')
    await pool.query('select id, type, created_at from outbox.event')
    await pool.query('select * from outbox.log; select * from outbox.step')
    const { rows } = await pool.query('select state from outbox.status limit 5')
    expect(rows.length).toBeGreaterThan(0)
    for (const sql of ['select payload from outbox.event', 'delete from outbox.worker', EVENT]) {
      await expect(pool.query(sql), sql).rejects.toMatchObject({ code: '42501' })
    }
    const { checks } = await doctor(pool)
    expect(checks.filter(({ level }) => level === 'fail')).toEqual([])
  })

  it('an admin rebases and asks the doctor', async () => {
    const pool = as('app_admin')
    expect(await rebase(pool, { actor: 'ada' })).toMatchObject({ numbered: 0 })
    expect(await doctor(pool, { full: true })).toMatchObject({ ok: true })
  })

  it('a stranger gets nowhere', async () => {
    for (const sql of [EVENT, 'select * from outbox.step']) {
      await expect(as('stranger').query(sql)).rejects.toMatchObject({ code: '42501' })
    }
  })
})

it('a plain owner migrates, emits, works and rebases, where pg_control_system() is refused', async () => {
  await owner.query('delete from outbox.subscription')
  const sink = memorySink()
  const outbox = createOutbox({ pool: owner })
  outbox.subscribe('plain', { revision: 1, types: ['*'], sink, from: 'now' })
  await outbox.runOnce()
  await owner.query(EVENT)
  await drain(outbox)
  expect(sink.accepted).toHaveLength(1)
  const [step] = (await owner.query('select * from outbox.step order by id desc limit 1')).rows
  expect(step.system_identifier).toBeNull()
  await rebase(owner)
  await owner.query(EVENT)
  await drain(outbox)
  expect(sink.accepted).toHaveLength(2)
})
