// Migrations: any number of processes at once, refusals that name the reason, nothing half done.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { copyDatabase, engineRoot } from '../../../test/support/case.ts'
import { type TestDatabase, useDatabase } from '../../../test/support/database.ts'
import { migrate } from '../src/index.ts'
import { assertMigrated, migrations } from '../src/migrate.ts'
import { isNewer, routineNames } from '../src/routines.ts'
import { version } from '../src/version.ts'

const server = useDatabase({ ownCluster: true, empty: true, settings: { max_connections: '60' } })
const fresh = () => copyDatabase(server, 'template0')
const names = migrations().map(({ name }) => name)
const everything = [...names, 'routines']

async function installed(db: TestDatabase): Promise<string[]> {
  const rows = await db.query('select name from outbox.migration order by version')
  return rows.map(({ name }) => String(name))
}

describe('at once', () => {
  it('ten callers with pools of their own: each migration is applied once', async () => {
    const db = await fresh()
    const results = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const pool = new pg.Pool({ connectionString: db.url, max: 2 })
        return migrate(pool).finally(() => pool.end())
      }),
    )
    expect(results.flatMap(({ applied }) => applied).sort()).toEqual(everything)
    expect(await installed(db)).toEqual(names)
    await assertMigrated(db.pool)
  })

  it('three real processes', async () => {
    const db = await fresh()
    const ends = await Promise.all([1, 2, 3].map(() => migrateElsewhere(db.url)))
    expect(ends.map(({ code, errors }) => (code === 0 ? 'well' : errors))).toEqual(
      Array.from({ length: 3 }, () => 'well'),
    )
    expect(ends.flatMap(({ applied }) => applied).sort()).toEqual([...(await installed(db)), 'routines'])
  })
})

/** The built library in a process of its own (`npm run build` first). */
async function migrateElsewhere(url: string) {
  const script = `
    import pg from 'pg'
    import { migrate } from ${JSON.stringify(`${engineRoot}/dist/index.js`)}
    const pool = new pg.Pool({ connectionString: ${JSON.stringify(url)}, max: 2 })
    console.log(JSON.stringify((await migrate(pool)).applied))
    await pool.end()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { cwd: engineRoot })
  let out = ''
  let errors = ''
  child.stdout.on('data', (data) => {
    out += data
  })
  child.stderr.on('data', (data) => {
    errors += data
  })
  const [code] = await once(child, 'close')
  return { code, errors, applied: out === '' ? [] : (JSON.parse(out) as string[]) }
}

describe('refusals', () => {
  it('a schema that is newer than the library', async () => {
    const db = await fresh()
    await migrate(db.pool)
    await db.query(`insert into outbox.migration (version, name, hash) values (9999, '9999_x', 'y')`)
    await expect(migrate(db.pool)).rejects.toMatchObject({ code: 'HMD_MIGRATION_NEWER' })
    await expect(assertMigrated(db.pool)).rejects.toMatchObject({ code: 'HMD_MIGRATION_NEWER' })
  })

  it('a migration that was applied with another text', async () => {
    const db = await fresh()
    await migrate(db.pool)
    await db.query(`update outbox.migration set hash = 'other' where version = 3`)
    await expect(migrate(db.pool)).rejects.toMatchObject({ code: 'HMD_MIGRATION_CHANGED' })
  })

  it('a schema that is missing or lacks something, without changing anything', async () => {
    const db = await fresh()
    await expect(assertMigrated(db.pool)).rejects.toMatchObject({ code: 'HMD_MIGRATION_NEEDED' })
    expect(await db.query(`select from pg_namespace where nspname = 'outbox'`)).toEqual([])
  })

  it('another number of lanes, once something was numbered', async () => {
    const db = await fresh()
    await migrate(db.pool, { lanes: 8 })
    await migrate(db.pool, { lanes: 4 })
    expect(await db.query('select lanes from outbox.setting')).toEqual([{ lanes: 4 }])
    await db.query(`select outbox.emit('doc.updated', 'doc', 'a')`)
    await db.query('select outbox.sequence()')
    await migrate(db.pool, { lanes: 4 })
    await expect(migrate(db.pool, { lanes: 8 })).rejects.toMatchObject({
      code: 'HMD_LANES_CHANGED',
    })
    expect(await db.query('select lanes from outbox.setting')).toEqual([{ lanes: 4 }])
  })

  it('lanes that cannot be', async () => {
    const db = await fresh()
    for (const lanes of [0, 257, 1.5, Number.NaN]) {
      await expect(migrate(db.pool, { lanes })).rejects.toMatchObject({
        code: 'HMD_OPTION_INVALID',
      })
    }
    expect(await db.query(`select from pg_namespace where nspname = 'outbox'`)).toEqual([])
  })
})

it('an interrupted migration leaves nothing half done', async () => {
  const db = await fresh()
  // Cut among the routines: the tables of all migrations are made by then.
  await db.query(`create schema outbox_trap`)
  await db.query(`create function outbox_trap.cut() returns event_trigger language plpgsql as $$
    begin
      if exists (select from pg_event_trigger_ddl_commands() where object_identity like 'outbox.number_next%') then
        perform pg_terminate_backend(pg_backend_pid());
      end if;
    end $$;
    create event trigger cut on ddl_command_end execute function outbox_trap.cut()`)
  await expect(migrate(db.pool)).rejects.toThrow()
  expect(await db.query(`select from pg_namespace where nspname = 'outbox'`)).toEqual([])
  await db.query('drop event trigger cut')
  expect((await migrate(db.pool)).applied).toEqual(everything)
  await assertMigrated(db.pool)
})

describe('routines', () => {
  const bodyOf = async (db: TestDatabase) => {
    const [row] = await db.query(`select p.prosrc from pg_proc p where p.oid = 'outbox.forget_cursors'::regproc`)
    return row?.prosrc
  }
  const isOpen = (db: TestDatabase) =>
    db.query(`select has_function_privilege('public', p.oid, 'execute') as open from pg_proc p
      where p.oid = 'outbox.forget_cursors'::regproc`)

  it('once applied are not applied again', async () => {
    const db = await fresh()
    await migrate(db.pool)
    const before = await db.query(
      `select xmin::text, oid::text from pg_proc where pronamespace = 'outbox'::regnamespace`,
    )
    expect(await migrate(db.pool)).toMatchObject({ applied: [], routines: version })
    expect(
      await db.query(`select xmin::text, oid::text from pg_proc where pronamespace = 'outbox'::regnamespace`),
    ).toEqual(before)
  })

  it('of an older version, or with another text, are replaced as a whole, and closed to PUBLIC', async () => {
    const db = await fresh()
    await migrate(db.pool)
    const body = await bodyOf(db)
    await db.query(`create or replace function outbox.forget_cursors() returns trigger language plpgsql
      as 'begin return null; end'; grant execute on function outbox.forget_cursors to public`)
    await db.query(`update outbox.routine set hash = 'other', version = '0.0.9'`)
    await expect(assertMigrated(db.pool)).rejects.toMatchObject({ code: 'HMD_MIGRATION_NEEDED' })
    expect((await migrate(db.pool)).applied).toEqual(['routines'])
    expect(await bodyOf(db)).toBe(body)
    expect(await isOpen(db)).toEqual([{ open: false }])
    await assertMigrated(db.pool)
  })

  it('of an older version with another result or other names are dropped first, and nothing else is', async () => {
    const db = await fresh()
    await migrate(db.pool)
    const all = () =>
      db.query(`select p.oid::regprocedure::text as call, pg_get_function_result(p.oid) as result,
          p.proacl::text as grants from pg_proc p where p.pronamespace = 'outbox'::regnamespace order by 1`)
    const now = await all()
    await db.query(`drop function outbox.claim, outbox.read, outbox.number_due;
      create function outbox.claim(sub text, rev integer, who text, lanes_max integer, lease_ms integer,
        call_ms integer default null)
      returns table (lane smallint, fence bigint, pos bigint, expired boolean, again_ms integer)
      language sql as 'select null::smallint, null::bigint, null::bigint, null::boolean, null::integer';
      create function outbox.head(pos bigint) returns text language sql return pos::text;
      create function outbox.read(sub text, rev integer, lanes smallint[], after bigint[], count_max integer,
        bytes_max bigint, scan_max integer, probing boolean, filled boolean[] default null)
      returns table (lane smallint, due boolean, through bigint, heads text, payloads text, kind_max smallint)
      language sql begin atomic; select null::smallint, null::boolean, null::bigint, outbox.head(1), '', null::smallint; end;
      create function outbox.number_due(after_at timestamptz, after_id bigint, now timestamptz, piece integer,
        base bigint, lane_count smallint, out picked integer, out numbered integer, out last_at timestamptz,
        out last_id bigint) language sql as 'select 1, 1, null::timestamptz, null::bigint';
      create function outbox.held(sub text, who text, lanes smallint[], fences bigint[]) returns table (lane smallint)
      language sql as 'select null::smallint';
      create function outbox.somebody_elses() returns integer language sql return 1;
      update outbox.routine set hash = 'other', version = '0.0.9'`)
    expect((await migrate(db.pool)).applied).toEqual(['routines'])
    expect((await all()).filter(({ call }) => call !== 'outbox.somebody_elses()')).toEqual(now)
    expect(await db.query('select outbox.somebody_elses() as kept')).toEqual([{ kept: 1 }])
  })

  it('of a newer version stay, and are good enough', async () => {
    const db = await fresh()
    await migrate(db.pool)
    await db.query(`update outbox.routine set hash = 'newer', version = '99.0.0'`)
    expect(await migrate(db.pool)).toMatchObject({ applied: [], routines: '99.0.0' })
    expect(await db.query('select hash from outbox.routine')).toEqual([{ hash: 'newer' }])
    await assertMigrated(db.pool)
  })

  it('that are missing are needed', async () => {
    const db = await fresh()
    await migrate(db.pool)
    await db.query('delete from outbox.routine')
    await expect(assertMigrated(db.pool)).rejects.toMatchObject({ code: 'HMD_MIGRATION_NEEDED' })
  })

  it('versions are compared as semantic versions are', () => {
    const order = ['0.1.0', '0.9.1', '0.10.0', '1.0.0-beta.2', '1.0.0-beta.10', '1.0.0', '1.0.1']
    for (const [index, one] of order.entries()) {
      for (const [other, than] of order.entries()) expect(isNewer(one, than), `${one} ${than}`).toBe(index > other)
    }
  })

  it('are all in the list of their order', () => {
    const files = readdirSync(new URL('../routines/', import.meta.url)).map((name) => name.replace('.sql', ''))
    expect([...routineNames].sort()).toEqual(files.sort())
  })
})
