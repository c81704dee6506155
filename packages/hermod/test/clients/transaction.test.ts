// `outbox.transaction`: what its `emit` is given travels with COMMIT and shares the fate of the rows.

import pg from 'pg'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { literal, type PoolClient } from '../../src/database.ts'
import { createOutbox, type Outbox } from '../../src/index.ts'

const db = useDatabase()
let outbox: Outbox

const placed = (id: string, payload: unknown = {}) => ({
  type: 'order.placed',
  aggregate: ['order', id] as const,
  payload,
})
const write = (tx: PoolClient, id: string) => tx.query({ text: 'insert into shop values ($1)', values: [id] })
const rows = (id: string) => db.query('select from shop where id = $1', [id])
const events = async (id: string) =>
  (
    await db.query(
      'select type, payload::text, headers, not_before, version, key from outbox.event where aggregate_id = $1 order by id',
      [id],
    )
  ).map((row) => ({ ...row, payload: JSON.parse(row.payload as string) }))

beforeAll(async () => {
  await db.query('create table shop (id text primary key)')
  outbox = createOutbox({ pool: db.pool })
})

it('sends events and COMMIT as one message', async () => {
  const texts = await outbox.transaction(async (tx, emit) => {
    await write(tx, 'one')
    emit(placed('one', { n: 1 }))
    return vi.spyOn(tx, 'query').mock.calls
  })
  expect(texts).toEqual([[expect.stringMatching(/^select outbox\.emit_one\(.*\);commit$/)]])
  expect(await rows('one')).toHaveLength(1)
  expect(await events('one')).toMatchObject([{ type: 'order.placed', payload: { n: 1 } }])
})

it('keeps the order of several calls, and everything an event has', async () => {
  const notBefore = new Date('2027-01-31T08:00:00Z')
  await outbox.transaction(async (_tx, emit) => {
    emit(placed('many', 1))
    emit([placed('many', 2), { ...placed('many', 3), headers: { trace: "o'k" }, notBefore }])
    emit({ ...placed('many', 4), key: 'many-4', version: 7 })
  })
  expect(await events('many')).toMatchObject([
    { payload: 1 },
    { payload: 2, headers: null, key: null, version: 1 },
    { payload: 3, headers: { trace: "o'k" }, not_before: notBefore },
    { payload: 4, key: 'many-4', version: 7 },
  ])
})

describe.each(['on', 'off'])('with standard_conforming_strings %s', (setting) => {
  const texts = [
    `it's`,
    `'; rollback; --`,
    '\\',
    "\\'",
    `\\'; drop table shop; --`,
    `E'\\\\'`,
    '$1 $$ $a$',
    '%s :x ?',
    'line\nbreak\t\r',
    '\u2028 ☃ 😀',
    '"{},"',
    'null',
    '\x01',
  ]

  it.each(texts)('carries %j unchanged', async (text) => {
    const id = `${setting} ${text}`
    await outbox.transaction(async (tx, emit) => {
      await tx.query(`set local standard_conforming_strings = ${setting}`)
      emit(placed(id, { text }))
    })
    await outbox.transaction(async (tx, emit) => {
      await tx.query(`set local standard_conforming_strings = ${setting}`)
      emit([placed(id, { text, n: 2 }), placed(id, { text, n: 3 })])
    })
    expect((await events(id)).map(({ payload }) => payload)).toEqual([{ text }, { text, n: 2 }, { text, n: 3 }])
  })
})

it('emits more than one call may hold', async () => {
  await outbox.transaction(async (_tx, emit) => {
    for (let n = 0; n < 3; n++) emit(Array.from({ length: 4_000 }, () => placed('lots')))
  })
  expect(await db.query(`select from outbox.event where aggregate_id = 'lots'`)).toHaveLength(12_000)
})

describe('nothing is written when', () => {
  it('the work throws', async () => {
    const failing = outbox.transaction(async (tx, emit) => {
      await write(tx, 'thrown')
      emit(placed('thrown'))
      throw new Error('changed my mind')
    })
    await expect(failing).rejects.toThrow('changed my mind')
    expect([await rows('thrown'), await events('thrown')]).toEqual([[], []])
  })

  it('an event is refused, and the caller hears of it at once', async () => {
    const failing = outbox.transaction(async (tx, emit) => {
      await write(tx, 'refused')
      expect(() => emit({ ...placed('refused'), type: 'Wrong' })).toThrow(/type must be noun\.verbed/)
      emit({ ...placed('refused'), type: 'Wrong' })
    })
    await expect(failing).rejects.toMatchObject({ code: 'HMD_EVENT_INVALID', field: 'type' })
    expect(await rows('refused')).toEqual([])
  })

  it('the database refuses an event', async () => {
    const keyed = (payload: unknown) => ({ ...placed('conflict', payload), key: 'conflict' })
    await outbox.transaction(async (_tx, emit) => emit(keyed(1)))
    const failing = outbox.transaction(async (tx, emit) => {
      await write(tx, 'conflict')
      emit(keyed(2))
    })
    await expect(failing).rejects.toMatchObject({ code: 'HMD_IDEMPOTENCY_CONFLICT' })
    expect([await rows('conflict'), await events('conflict')]).toMatchObject([[], [{ payload: 1 }]])
  })

  it.each([false, true])('the error of a statement was swallowed (events: %s)', async (withEvent) => {
    const failing = outbox.transaction(async (tx, emit) => {
      await write(tx, 'swallowed')
      await tx.query('select 1/0').catch(() => {})
      if (withEvent) emit(placed('swallowed'))
    })
    await expect(failing).rejects.toMatchObject({ code: withEvent ? '25P02' : 'HMD_ROLLED_BACK' })
    expect([await rows('swallowed'), await events('swallowed')]).toEqual([[], []])
  })

  it('COMMIT itself fails', async () => {
    await db.query('alter table shop add constraint later unique (id) deferrable initially deferred')
    await db.query('alter table shop drop constraint shop_pkey')
    await outbox.transaction((tx) => write(tx, 'deferred'))
    const failing = outbox.transaction(async (tx, emit) => {
      await write(tx, 'deferred')
      emit(placed('deferred'))
    })
    await expect(failing).rejects.toMatchObject({ code: '23505' })
    expect([await rows('deferred'), await events('deferred')]).toMatchObject([[{}], []])
  })
})

it('refuses what comes after the end', async () => {
  const kept = await outbox.transaction(async (_tx, emit) => emit)
  expect(() => kept(placed('late'))).toThrow('this transaction has ended')
  let leaked: typeof kept | undefined
  const failing = outbox.transaction(async (_tx, emit) => {
    leaked = emit
    throw new Error('no')
  })
  await expect(failing).rejects.toThrow('no')
  expect(() => leaked?.(placed('late'))).toThrow('this transaction has ended')
})

it('a text with U+0000 never becomes part of a statement', () => {
  expect(() => literal('a\0b')).toThrow('U+0000')
})

it('begins nothing if BEGIN was cancelled', async () => {
  const open = new pg.Pool({ connectionString: db.url, max: 1 })
  const client = await open.connect()
  const query = client.query.bind(client) as (text: string) => Promise<unknown>
  const cancelled = Object.assign(new Error('cancelled'), { code: '57014' })
  client.query = ((text: string) => (text === 'begin' ? Promise.reject(cancelled) : query(text))) as never
  client.release()
  const work = vi.fn()
  await expect(createOutbox({ pool: open }).transaction(work)).rejects.toMatchObject({ code: '57014' })
  expect(work).not.toHaveBeenCalled()
  await open.end()
})
