// The doctor: a healthy database gets a clean bill, and each named trouble is found, with its fix.

import { afterEach, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { session } from '../../../../test/support/session.ts'
import { doctor } from '../../src/desk/doctor.ts'
import { createOutbox } from '../../src/index.ts'
import { fakeClock, memorySink } from '../../src/testing/index.ts'

const db = useDatabase({ ownCluster: true })

async function found(name: string, options = {}) {
  const { checks } = await doctor(db.pool, options)
  return checks.find((check) => check.name === name)
}

const emit = () => db.query(`select outbox.emit('doc.updated', 'doc', 'a', '{}')`)
const undo: string[] = []

afterEach(async () => {
  for (const sql of undo.splice(0).reverse()) await db.query(sql)
})

/** Breaks something and puts it right after the test. */
async function broken(sql: string, repair: string): Promise<void> {
  undo.push(repair)
  await db.query(sql)
}

it('finds nothing in a healthy database', async () => {
  await emit()
  await db.query('select outbox.sequence()')
  const { ok, checks } = await doctor(db.pool)
  expect(checks.filter(({ level }) => level !== 'ok')).toEqual([])
  expect(ok).toBe(true)
  expect(checks.map(({ name }) => name)).toEqual([
    ...['postgres', 'primary', 'migrations', 'sequence', 'identity', 'clock', 'connections'],
    ...['oldest transaction', 'idle producers', 'privileges', 'auditor', 'partitions'],
    ...['unserved subscriptions', 'kinds of sinks', 'held subscriptions', 'workers', 'retention', 'watched tables'],
  ])
})

it('names the statement that repairs a cached sequence', async () => {
  await broken('alter sequence outbox.event_id cache 20', 'alter sequence outbox.event_id cache 1')
  const check = await found('sequence')
  expect(check).toMatchObject({ ok: false, level: 'fail' })
  expect(check?.fix).toContain('alter sequence outbox.event_id cache 1')
})

it('counts events that are in no log, since the last audit and in full', async () => {
  await emit()
  await db.query('select outbox.sequence()')
  expect(await found('auditor')).toMatchObject({ level: 'ok' })
  await emit()
  await db.query('select outbox.sequence()')
  const lost = 'create table kept as select * from outbox.log order by pos desc limit 1'
  const back = 'insert into outbox.log select * from kept; drop table kept'
  await broken(`${lost}; delete from outbox.log l using kept k where l.pos = k.pos`, back)
  const since = await found('auditor')
  expect(since).toMatchObject({ level: 'fail', fix: expect.stringContaining('hermod rebase') })
  expect(since?.says).toMatch(/^1 committed events/)
  expect((await found('auditor', { full: true }))?.says).toMatch(/^1 committed events/)
})

it('looks only at what came since the last audit, unless asked for all', async () => {
  await found('auditor')
  const lost = 'create table kept as select * from outbox.log order by pos limit 1 offset 1'
  const back = 'insert into outbox.log select * from kept; drop table kept'
  await broken(`${lost}; delete from outbox.log l using kept k where l.pos = k.pos`, back)
  expect(await found('auditor')).toMatchObject({ level: 'ok' })
  expect(await found('auditor', { full: true })).toMatchObject({ level: 'fail' })
})

it('says that the database was restored', async () => {
  const mine = `(select system_identifier from pg_control_system())`
  const repair = `update outbox.step set system_identifier = ${mine}`
  await broken('update outbox.step set system_identifier = 1', repair)
  expect(await found('identity')).toMatchObject({ level: 'fail', fix: 'Run hermod rebase.' })
})

it('says who sits idle in a transaction that emitted', async () => {
  const producer = await session(db, 'slow-producer')
  await producer.begin()
  await producer.run(`select outbox.emit('doc.updated', 'doc', 'a', '{}')`)
  expect(await found('idle producers'), 'not after a moment').toMatchObject({ level: 'ok' })
  expect((await found('oldest transaction'))?.says).toContain('slow-producer')
  await producer.rollback()
})

it('says what is open to PUBLIC', async () => {
  const open = 'grant execute on function outbox.sequence to public'
  await broken(open, 'select outbox.apply_grants()')
  const check = await found('privileges')
  expect(check?.says).toContain('outbox.sequence(integer,')
  expect(check?.fix).toContain('outbox.apply_grants()')
})

it('says that events lie in the default partition', async () => {
  await db.query(`insert into outbox.event (id, type, aggregate_type, aggregate_id, payload, bytes)
    values (9000000000, 'doc.updated', 'doc', 'far', '{}', 2)`)
  undo.push('delete from outbox.event where id = 9000000000')
  expect(await found('partitions')).toMatchObject({ level: 'warn' })
})

it('names subscriptions nobody serves, held or paused ones, and a clock that was replaced', async () => {
  const outbox = createOutbox({ pool: db.pool })
  const sink = memorySink()
  outbox.subscribe('forgotten', { revision: 1, types: ['*'], sink, from: 'beginning' })
  await outbox.runOnce()
  undo.push(`delete from outbox.subscription`)
  expect(await found('workers')).toMatchObject({ level: 'warn' })
  await db.query(`update outbox.subscription set held_cause = 'misconfigured', held_says = '401',
    held_since = now(), probe_at = now()`)
  expect((await found('held subscriptions'))?.says).toContain('forgotten is misconfigured')
  await db.query(`update outbox.subscription set served_at = now() - interval '3 days'`)
  expect((await found('unserved subscriptions'))?.says).toContain('forgotten: nobody for 3.0 days')
  const clock = await fakeClock(db.pool)
  await clock.advance(30 * 86_400_000)
  expect(await found('clock')).toMatchObject({ level: 'fail' })
  expect(await found('retention')).toMatchObject({ level: 'warn' })
  expect(await found('retention', { eventDays: 29 }), 'as long as the settings say').toMatchObject({ level: 'ok' })
  expect(await found('retention', { eventDays: 26 })).toMatchObject({ level: 'warn' })
  await clock.restore()
})

it('stops at the door where nothing else makes sense', async () => {
  const known = `insert into outbox.migration (version, name, hash) values (9999, '9999_newer', 'x')`
  await broken(known, 'delete from outbox.migration where version = 9999')
  const { ok, checks } = await doctor(db.pool)
  expect(ok).toBe(false)
  expect(checks.at(-1)).toMatchObject({ name: 'migrations', level: 'fail' })
  expect(checks.at(-1)?.says).toContain('HMD_MIGRATION_NEWER')
})
