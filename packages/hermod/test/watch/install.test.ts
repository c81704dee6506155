// Installing and removing a capture: what is refused, who may write, what is not seen.

import { beforeEach, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { session } from '../../../../test/support/session.ts'
import { createOutbox } from '../../src/index.ts'
import { memorySink } from '../../src/testing/index.ts'

const db = useDatabase()
const outbox = () => createOutbox({ pool: db.pool })
const count = async () => Number((await db.query('select count(*) from outbox.event'))[0]?.count)

beforeEach(async () => {
  await db.query(`drop table if exists document cascade; delete from outbox.watched; truncate outbox.event;
    create table document (id int primary key, title text, code text, slot int unique deferrable)`)
})

describe('watching twice', () => {
  it('with the same options changes nothing', async () => {
    expect(await outbox().watch('document', { type: 'document' })).toBe(true)
    const before = await db.query(`select oid::int from pg_trigger where tgname like '00%' order by 1`)
    expect(await outbox().watch('public.document', { type: 'document', key: ['id'] })).toBe(false)
    expect(await db.query(`select oid::int from pg_trigger where tgname like '00%' order by 1`)).toEqual(before)
  })

  it('with other options replaces them at once', async () => {
    await outbox().watch('document', { type: 'document' })
    expect(await outbox().watch('document', { type: 'paper', truncate: 'refresh' })).toBe(true)
    await db.query('insert into document values (1)')
    expect(await db.query('select type from outbox.event')).toEqual([{ type: 'paper.created' }])
    expect(await db.query(`select name, options ->> 'truncate' as truncate from outbox.watched`)).toEqual([
      { name: 'public.document', truncate: 'refresh' },
    ])
  })

  it('a trigger somebody dropped comes back', async () => {
    await outbox().watch('document', { type: 'document' })
    await db.query('drop trigger "00_hermod_update" on document')
    expect(await outbox().watch('document', { type: 'document' })).toBe(true)
  })

  it('at the same time by two processes', async () => {
    const both = await Promise.all([1, 2].map(() => outbox().watch('document', { type: 'document' })))
    expect(both.toSorted()).toEqual([false, true])
  })
})

it('unwatch removes everything', async () => {
  await outbox().watch('document', { type: 'document' })
  expect(await outbox().unwatch('document')).toBe(true)
  expect(await outbox().unwatch('document')).toBe(false)
  await db.query('insert into document values (1); truncate document')
  expect(await count()).toBe(0)
})

describe('refused, naming the table or column', () => {
  const refused: [what: string, table: string, options: object, says: RegExp][] = [
    ['no such table', 'nowhere', {}, /there is no table nowhere/],
    ['no such column', 'document', { columns: ['titel'] }, /document has no column titel/],
    ['no such key column', 'document', { key: ['ident'] }, /document has no column ident/],
    ['a key that is not unique', 'document', { key: ['code'] }, /\["code"\].*unique index/],
    ['a key checked only at commit', 'document', { key: ['slot'] }, /\["slot"\].*not deferrable/],
    ['a table of Hermod', 'outbox.audit', {}, /outbox.audit belongs to Hermod/],
    ['a view', 'a_view', {}, /a_view is not an ordinary table/],
    ['a catalogue', 'pg_class', {}, /not an ordinary table/],
    ['a bad noun', 'document', { type: 'Bad Noun' }, /type must be/],
    ['a bad event name', 'document', { events: { insert: 'nope' } }, /type must be noun.verbed/],
  ]
  it.each(refused)('%s', async (_, table, options, says) => {
    await db.query('create or replace view a_view as select 1 as id')
    const failure = outbox().watch(table, { type: 'document', ...options })
    await expect(failure).rejects.toMatchObject({
      code: 'HMD_WATCH_INVALID',
      message: expect.stringMatching(says),
    })
    expect(await db.query('select from outbox.watched')).toEqual([])
  })

  it('a table without a key', async () => {
    await db.query('create table if not exists keyless (x int)')
    await expect(outbox().watch('keyless', { type: 'x' })).rejects.toThrow(/keyless has no primary key/)
  })

  it('a virtual column', async () => {
    const [server] = await db.query(`select current_setting('server_version_num')::int as version`)
    const kind = Number(server?.version) >= 180_000 ? 'virtual' : 'stored'
    await db.query(`alter table document add low text generated always as (lower(title)) ${kind}`)
    const watching = outbox().watch('document', { type: 'document', columns: ['low'] })
    if (kind === 'virtual') await expect(watching).rejects.toThrow(/no column low.*virtual/)
    else expect(await watching).toBe(true)
  })

  it('a table that a sink writes, declared here or installed', async () => {
    const sink = { ...memorySink(), tables: ['public.document'] }
    const made = outbox().subscribe('writes', { revision: 1, types: ['*'], sink })
    await expect(made.watch('document', { type: 'document' })).rejects.toThrow(/hear itself/)
    await db.query(`select outbox.subscribe('w', 1, '{"sink": {"tables": ["document"]}}', '{*}', null, 1::smallint,
      true, false, false, false, 'live', null)`)
    await expect(outbox().watch('document', { type: 'document' })).rejects.toThrow(/a sink of w/)
    await db.query(`delete from outbox.subscription`)
  })

  it('an unknown option suggests the known one', async () => {
    const options = { type: 'document', column: ['title'] } as never
    await expect(outbox().watch('document', options)).rejects.toThrow(/did you mean columns/)
  })
})

it('works for a role that has no rights on schema outbox', async () => {
  await outbox().watch('document', { type: 'document' })
  await db.query(
    `drop role if exists hermod_app; create role hermod_app; grant insert, update, delete, select on document to hermod_app`,
  )
  const a = await session(db, 'a')
  await a.run('set role hermod_app')
  await a.run(`insert into document values (1); update document set title = 'x'; delete from document`)
  expect(await count()).toBe(3)
  await expect(a.run('select * from outbox.event')).rejects.toMatchObject({ code: '42501' })
  await expect(a.run(`select outbox.watch('document', '{}')`)).rejects.toMatchObject({
    code: '42501',
  })
  await a.close()
  await db.query('drop owned by hermod_app; drop role hermod_app')
})

it('a search path of the writer changes nothing', async () => {
  await outbox().watch('document', { type: 'document' })
  const a = await session(db, 'a')
  await a.run(`create temp table event (x int); set search_path = pg_temp, public`)
  await a.run('insert into document values (1)')
  expect(await count()).toBe(1)
})

it('under session_replication_role = replica nothing is captured', async () => {
  await outbox().watch('document', { type: 'document' })
  const a = await session(db, 'a')
  await a.run('set session_replication_role = replica')
  await a.run('insert into document values (1)')
  expect(await count()).toBe(0)
})

it('a table locked for long is a coded error, and nothing has changed', async () => {
  const a = await session(db, 'a')
  await a.begin()
  await a.run('lock table document')
  await db.query(`alter function outbox.watch set lock_timeout = '50ms'`)
  const watching = outbox().watch('document', { type: 'document' })
  await expect(watching).rejects.toMatchObject({ code: 'HMD_LOCK_TIMEOUT' })
  await db.query(`alter function outbox.watch set lock_timeout = '10s'`)
  await a.rollback()
  expect(await db.query('select from outbox.watched')).toEqual([])
})
