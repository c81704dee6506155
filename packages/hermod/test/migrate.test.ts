// Migrations: any number of processes at once, refusals that name the reason, nothing half done.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { copyDatabase, engineRoot } from '../../../test/support/case.ts'
import { type TestDatabase, useDatabase } from '../../../test/support/database.ts'
import { migrate } from '../src/index.ts'
import { assertMigrated, migrations } from '../src/migrate.ts'

const server = useDatabase({ ownCluster: true, empty: true, settings: { max_connections: '60' } })
const fresh = () => copyDatabase(server, 'template0')
const names = migrations().map(({ name }) => name)

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
    expect(results.flatMap(({ applied }) => applied).sort()).toEqual(names)
    expect(await installed(db)).toEqual(names)
    await assertMigrated(db.pool)
  })

  it('three real processes', async () => {
    const db = await fresh()
    const ends = await Promise.all([1, 2, 3].map(() => migrateElsewhere(db.url)))
    expect(ends.map(({ code, errors }) => (code === 0 ? 'well' : errors))).toEqual(
      Array.from({ length: 3 }, () => 'well'),
    )
    expect(ends.flatMap(({ applied }) => applied).sort()).toEqual(await installed(db))
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
  // Cut after the third migration began: its function is there only if it was applied.
  await db.query(`create schema outbox; create schema outbox_trap`)
  await db.query(`create function outbox_trap.cut() returns event_trigger language plpgsql as $$
    begin
      if exists (select from pg_event_trigger_ddl_commands() where object_identity like 'outbox.number_next%') then
        perform pg_terminate_backend(pg_backend_pid());
      end if;
    end $$;
    create event trigger cut on ddl_command_end execute function outbox_trap.cut()`)
  await expect(migrate(db.pool)).rejects.toThrow()
  expect(await installed(db)).toEqual(names.slice(0, 2))
  const sql = `select count(*)::int as n from pg_proc where pronamespace = 'outbox'::regnamespace and proname = $1`
  expect(await db.query(sql, ['identity'])).toEqual([{ n: 0 }])
  await db.query('drop event trigger cut')
  expect((await migrate(db.pool)).applied).toEqual(names.slice(2))
  await assertMigrated(db.pool)
})
