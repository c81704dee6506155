// Settings of a database or a role that nobody meant for us: encodings, formats, limits, names that shadow ours.

import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import { freshDatabase, openPool } from './fresh-database.ts'

/** What ALTER DATABASE can do to a session; each of them is somebody's default. */
const SETTINGS: Readonly<Record<string, string>> = {
  extra_float_digits: '-15',
  datestyle: `'SQL, DMY'`,
  intervalstyle: 'sql_standard',
  timezone: `'Australia/Adelaide'`,
  bytea_output: 'escape',
  standard_conforming_strings: 'off',
  default_transaction_deferrable: 'on',
  row_security: 'off',
  check_function_bodies: 'off',
  escape_string_warning: 'on',
  array_nulls: 'on',
  quote_all_identifiers: 'on',
  xmloption: 'document',
  lc_numeric: `'C'`,
  search_path: 'hostile, public',
}

/** Everything we might name without its schema, made to do something else. */
const SHADOWS = `
  create schema hostile;
  create function hostile.pg_current_snapshot() returns pg_snapshot language sql as $$ select '9:9:'::pg_snapshot $$;
  create function hostile.clock_timestamp() returns timestamptz language sql as $$ select 'epoch'::timestamptz $$;
  create function hostile.coalesce_text(text) returns text language sql as $$ select 'no' $$;
  create function hostile.octet_length(text) returns integer language sql as $$ select 0 $$;
  create function hostile.int8_less(bigint, bigint) returns boolean language sql as $$ select false $$;
  create operator hostile.< (leftarg = bigint, rightarg = bigint, procedure = hostile.int8_less);
  create function hostile.text_same(text, text) returns boolean language sql as $$ select false $$;
  create operator hostile.= (leftarg = text, rightarg = text, procedure = hostile.text_same);
  create table hostile.setting (lanes smallint);
  create table hostile.pg_class (oid oid, relname name)`

async function hostile(db: Env['db'], name: string): Promise<void> {
  await openPool(db, name).query(SHADOWS)
  for (const [setting, value] of Object.entries(SETTINGS)) {
    await db.admin.query(`alter database ${name} set ${setting} = ${value}`)
  }
}

/** From migrate to a delivered retry; the time of an event is what it was. */
async function wholeLife({ db, engine }: Env, name: string, id = 'one'): Promise<void> {
  const pool = openPool(db, name)
  const { rejected, delivered } = await engine.load<typeof import('../../../src/sinks/outcome.ts')>('sinks/outcome.ts')
  let refusing = true
  const seen: { id: string; createdAt: Date; payload: unknown }[] = []
  const errors: string[] = []
  const outbox = engine.createOutbox({
    pool,
    listener: { error: ({ during, error }) => void errors.push(`${during}: ${(error as Error).message}`) },
  })
  const deliver = async (events: readonly { aggregateId: string; createdAt: Date; payload: unknown }[]) =>
    events.map(({ aggregateId, createdAt, payload }) => {
      if (refusing) return rejected({ message: 'no \u20ac \u{1f600} here' })
      seen.push({ id: aggregateId, createdAt, payload })
      return delivered()
    })
  outbox.subscribe('all', { revision: 1, types: ['*'], from: 'beginning', sink: { name: 'choosy', deliver } as never })
  await outbox.migrate()
  const fromMs = Date.now() - 1_000
  const payload = { text: id, back: 'a\\b' }
  await outbox.transaction(async (tx) => {
    await outbox.emit(tx, { type: 'doc.changed', aggregate: ['doc', id], payload })
  })
  await outbox.runOnce({ deadlineMs: 5_000 })
  const [dead] = await outbox.deadLetters()
  expect(dead, 'its dead letter').toMatchObject({ aggregate: ['doc', id], attempts: 1 })
  expect(isNow(dead?.updatedAt, fromMs), `updated at ${dead?.updatedAt}`).toBe(true)
  refusing = false
  await outbox.retry('all', { state: 'dead' }, { actor: 'me' })
  await outbox.runOnce()
  expect(seen, 'delivered').toMatchObject([{ id, payload }])
  expect(isNow(seen[0]?.createdAt, fromMs), `created at ${seen[0]?.createdAt}`).toBe(true)
  const found = await outbox.find({ aggregate: ['doc', id] } as never)
  expect(isNow(found.events[0]?.createdAt ?? undefined, fromMs), 'found').toBe(true)
  await outbox.stats()
  const { doctor } = await engine.load<typeof import('../../../src/desk/doctor.ts')>('desk/doctor.ts')
  expect((await doctor(pool)).checks.filter(({ level }) => level === 'fail')).toEqual([])
  expect(errors, 'told by the worker').toEqual([])
}

function isNow(time: Date | undefined, fromMs: number): boolean {
  return time !== undefined && time.getTime() >= fromMs && time.getTime() <= Date.now() + 1_000
}

export const hostileSession = defineCase('hostile-session', async (env) => {
  const name = await freshDatabase(env.db)
  await hostile(env.db, name)
  await wholeLife(env, name)
})

/** The time of a stored subscription, and the day in the name of an archived file. */
export const otherDates = defineCase('hostile-session: another DateStyle', async ({ db, engine }) => {
  await db.admin.query(`alter database ${db.name} set datestyle = 'SQL, DMY'`)
  const pool = openPool(db, db.name)
  const folder = await mkdtemp(join(tmpdir(), 'hermod-archive-'))
  db.closeAtEnd(() => rm(folder, { recursive: true }))
  const fromMs = Date.now() - 1_000
  const outbox = engine.createOutbox({ pool })
  outbox.sinkKind('memory', () => ({ ...engine.testing.memorySink(), validate: () => 'no' }))
  await outbox.subscriptions.create('hook', { kind: 'memory', settings: {}, types: ['*'], from: 'beginning' })
  const [hook] = await outbox.subscriptions.list()
  expect(isNow(hook?.createdAt, fromMs), `created at ${hook?.createdAt}`).toBe(true)
  await outbox.transaction((tx) => outbox.emit(tx, { type: 'doc.changed', aggregate: ['doc', 'a'], payload: {} }))
  await outbox.runOnce()
  await pool.query(`update outbox.delivery set updated_at = updated_at - interval '400 days'`)
  const { removeExpired } =
    await engine.load<typeof import('../../../src/worker/upkeep/expired.ts')>('worker/upkeep/expired.ts')
  const told: unknown[] = []
  const listener = { warning: (what: unknown) => void told.push(what) }
  expect(await removeExpired(pool, { deliveryDays: 90, archive: { folder } } as never, 10, listener)).toBe(1)
  expect(told).toEqual([])
  expect(await readdir(folder), 'its name').toEqual([expect.stringMatching(/^delivery-\d{4}-\d\d-\d\d-/)])
})

/** Numbering compares snapshots, so another isolation level is refused, by name. */
export const otherIsolation = defineCase('hostile-session: another isolation level', async ({ db, engine }) => {
  await db.admin.query(`alter database ${db.name} set default_transaction_isolation = 'serializable'`)
  const outbox = engine.createOutbox({ pool: openPool(db, db.name) })
  outbox.subscribe('all', { revision: 1, types: ['*'], sink: engine.testing.memorySink() })
  await expect(outbox.runOnce({ upkeep: false })).rejects.toMatchObject({
    code: 'HMD_ISOLATION',
    fix: expect.stringContaining('default_transaction_isolation'),
  })
})

/** The settings alone, on a schema that is there already: what a sabotage can be seen by. */
export const floatDigits = defineCase('extra-float-digits', async (env) => {
  await env.db.admin.query(`alter database ${env.db.name} set extra_float_digits = -15`)
  await wholeLife(env, env.db.name)
})

export const latin1 = defineCase('latin1-database', async (env) => {
  const name = await freshDatabase(env.db, `encoding 'LATIN1' locale 'C'`)
  await wholeLife(env, name, 'na\u00efve')
  const pool = openPool(env.db, name)
  const emit = `select outbox.emit('doc.changed', 'doc', $1, $2::json)`
  await expect(pool.query(emit, ['\u20ac', null]), 'an id it cannot hold').rejects.toMatchObject({ code: '22P05' })
  await expect(pool.query(emit, ['x', '{"a":"\\u20ac"}'])).rejects.toMatchObject({ code: 'HM005' })
})

export const sqlAscii = defineCase('latin1-database: without an encoding', async (env) => {
  await wholeLife(env, await freshDatabase(env.db, `encoding 'SQL_ASCII' locale 'C'`), 'na\u00efve \u20ac')
})
