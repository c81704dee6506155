// Capturing a table: what each kind of change becomes, on a real database, through to a sink.

import pg from 'pg'
import { beforeEach, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { session } from '../../../../test/support/session.ts'
import { createOutbox } from '../../src/index.ts'
import { drain, memorySink } from '../../src/testing/index.ts'

const db = useDatabase()
const outbox = () => createOutbox({ pool: db.pool })

const events = () =>
  db.query<{ type: string; id: string; payload: unknown; headers: unknown }>(
    `select type, aggregate_id as id, payload, headers from outbox.event order by outbox.event.id`,
  )
const said = async () => (await events()).map(({ type, id }) => `${type} ${id}`)

/** COPY FROM STDIN with the driver alone. */
function copyIn(client: pg.Client, text: string, data: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const query = new pg.Query(text)
    query.on('error', reject)
    query.on('end', resolve)
    type Wire = { sendCopyFromChunk(chunk: Buffer): void; endCopyFrom(): void }
    Object.assign(query, {
      handleCopyInResponse(wire: Wire) {
        wire.sendCopyFromChunk(Buffer.from(data))
        wire.endCopyFrom()
      },
    })
    client.query(query)
  })
}

beforeEach(async () => {
  await db.query(`drop table if exists document, part cascade; delete from outbox.watched;
    truncate outbox.event; create table document (id int primary key, title text, note json, seen int not null default 0)`)
})

describe('changes', () => {
  it('a row changed by plain SQL arrives at a sink', async () => {
    const sink = memorySink()
    const made = outbox().subscribe('all', { revision: 1, types: ['document.*'], sink })
    await made.runOnce()
    await made.watch('public.document', { type: 'document' })
    await db.query(`insert into document (id, title) values (1, 'a')`)
    await db.query(`update document set title = 'b' where id = 1`)
    await db.query(`delete from document where id = 1`)
    await drain(made)
    expect(sink.accepted.map(({ type, payload }) => [type, payload])).toEqual([
      ['document.created', { id: 1, title: 'a', note: null, seen: 0 }],
      ['document.updated', { id: 1, title: 'b', note: null, seen: 0 }],
      ['document.deleted', { id: 1 }],
    ])
  })

  it('rolls back with the rows', async () => {
    await outbox().watch('document', { type: 'document' })
    const a = await session(db, 'a')
    await a.begin()
    await a.run(`insert into document values (1)`)
    await a.rollback()
    expect(await said()).toEqual([])
  })

  it('an update that changes nothing says nothing; neither does a column that is not listed', async () => {
    await outbox().watch('document', { type: 'document', columns: ['title', 'note'] })
    await db.query(`insert into document values (1, 'a', '{"x":1}')`)
    await db.query(`update document set title = 'a', seen = seen + 1, note = '{"x":1}'`)
    expect(await said()).toEqual(['document.created 1'])
    await db.query(`update document set note = '{"x":2}'`)
    expect((await events()).at(-1)).toMatchObject({
      type: 'document.updated',
      payload: { id: 1, title: 'a', note: { x: 2 } },
    })
  })

  it('another key: the old one is deleted, the new one created', async () => {
    await outbox().watch('document', { type: 'document', columns: ['title'] })
    await db.query(`insert into document values (1, 'a'), (2, 'b')`)
    await db.query('update document set id = id + 10')
    expect((await said()).slice(2)).toEqual([
      ...['document.deleted 1', 'document.created 11'],
      ...['document.deleted 2', 'document.created 12'],
    ])
  })

  it('COPY and ON CONFLICT are captured', async () => {
    await outbox().watch('document', { type: 'document' })
    const a = await session(db, 'a')
    await copyIn(a.client, 'copy document (id, title) from stdin', '1\ta\n2\tb\n')
    await a.run(`insert into document (id, title) values (2, 'x') on conflict (id) do update set title = 'c'`)
    expect(await said()).toEqual(['document.created 1', 'document.created 2', 'document.updated 2'])
  })

  it('a reference carries no payload; a row above 256 kB becomes one and says so', async () => {
    await outbox().watch('document', { type: 'document', payload: 'reference' })
    await db.query(`insert into document values (1, 'a')`)
    await outbox().watch('document', { type: 'document' })
    await db.query(`insert into document values (2, repeat('x', 270000))`)
    const [reference, truncated] = await events()
    expect(reference).toMatchObject({ payload: null, headers: null })
    expect(truncated).toMatchObject({ id: '2', payload: null })
    const { 'x-truncated': bytes } = (truncated?.headers ?? {}) as Record<string, string>
    expect(Number(bytes)).toBeGreaterThan(270_000)
  })

  it('headers come from the session', async () => {
    await outbox().watch('document', { type: 'document' })
    const a = await session(db, 'a')
    await a.run(`set hermod.actor = 'anna'; set hermod.headers = '{"Endpoint": "/x"}'`)
    await a.run('insert into document values (1)')
    expect((await events())[0]?.headers).toEqual({ actor: 'anna', endpoint: '/x' })
    for (const wrong of ['no json', '["a"]', '{"a": 1}', '{"a b": "x"}']) {
      await a.run(`select set_config('hermod.headers', $1, false)`, [wrong])
      await expect(a.run('insert into document values (2)')).rejects.toMatchObject({
        code: 'HM002',
      })
    }
  })

  it('the names of events can be chosen', async () => {
    const names = { insert: 'paper.filed', update: 'paper.changed', delete: 'paper.burnt' }
    await outbox().watch('document', { type: 'document', events: names })
    await db.query(`insert into document values (1); update document set title = 'x'; delete from document`)
    expect(await said()).toEqual(['paper.filed 1', 'paper.changed 1', 'paper.burnt 1'])
  })
})

describe('TRUNCATE', () => {
  it('is refused', async () => {
    await outbox().watch('document', { type: 'document' })
    await expect(db.query('truncate document')).rejects.toThrow(/HMD_WATCH_INVALID: public.document/)
  })

  it('or emits one refreshed event per row', async () => {
    await outbox().watch('document', { type: 'document', truncate: 'refresh' })
    await db.query('insert into document values (1), (2)')
    await db.query('truncate document')
    expect((await events()).slice(2)).toMatchObject([
      { type: 'document.refreshed', id: '1', payload: null },
      { type: 'document.refreshed', id: '2', payload: null },
    ])
  })
})

describe('tables of every kind', () => {
  it('quoted names and composite keys', async () => {
    await db.query(`drop schema if exists "My Shop" cascade; create schema "My Shop";
      create table "My Shop"."Order Line" ("Order" text, "no." int, "Qty" int, primary key ("Order", "no."))`)
    await outbox().watch('"My Shop"."Order Line"', { type: 'line', columns: ['Qty'] })
    await db.query(`insert into "My Shop"."Order Line" values ('a,"b', 1, 5)`)
    expect(await events()).toMatchObject([
      { id: JSON.stringify(['a,"b', 1]), payload: { Order: 'a,"b', 'no.': 1, Qty: 5 } },
    ])
  })

  it('generated columns are told as stored; virtual ones are not told', async () => {
    await db.query(`alter table document add loud text generated always as (upper(title)) stored`)
    await outbox().watch('document', { type: 'document', columns: ['loud'] })
    await db.query(`insert into document (id, title) values (1, 'a'); update document set title = 'b'`)
    expect((await events()).map(({ payload }) => payload)).toEqual([
      { id: 1, loud: 'A' },
      { id: 1, loud: 'B' },
    ])
  })

  it('partitioned tables: rows, moves between partitions, TRUNCATE of one of them', async () => {
    await db.query(`create table part (id int primary key, x int) partition by range (id);
      create table part_a partition of part for values from (0) to (10);
      create table part_b partition of part for values from (10) to (20)`)
    await outbox().watch('part', { type: 'part' })
    await db.query('insert into part values (1, 1)')
    await db.query('update part set id = 11')
    await db.query('insert into part_a values (2, 2)')
    expect(await said()).toEqual(['part.created 1', 'part.deleted 1', 'part.created 11', 'part.created 2'])
    await expect(db.query('truncate part_a')).rejects.toThrow('HMD_WATCH_INVALID')
    await expect(outbox().watch('part_a', { type: 'part' })).rejects.toMatchObject({
      code: 'HMD_WATCH_INVALID',
    })
    expect(await outbox().unwatch('part')).toBe(true)
    await db.query('truncate part_a')
  })

  it('a deferred constraint that fails takes the events with it', async () => {
    await db.query('alter table document add parent int references document deferrable initially deferred')
    await outbox().watch('document', { type: 'document' })
    await expect(db.query('insert into document (id, parent) values (1, 9)')).rejects.toMatchObject({ code: '23503' })
    expect(await said()).toEqual([])
    await db.query('insert into document (id, parent) values (1, 2), (2, null)')
    expect(await said()).toEqual(['document.created 1', 'document.created 2'])
  })

  it('a trigger of the table that changes the row again: the newest state comes last', async () => {
    await db.query(`create function touch() returns trigger language plpgsql as
      $$ begin update document set seen = seen + 1 where id = new.id; return null; end $$;
      create trigger after_insert after insert on document for each row execute function touch()`)
    await outbox().watch('document', { type: 'document' })
    await db.query('insert into document (id) values (1)')
    expect((await events()).map(({ payload }) => (payload as { seen: number }).seen)).toEqual([0, 1])
    await db.query('drop function touch() cascade')
  })
})
