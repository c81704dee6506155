// `outbox.emit` from the two libraries of the main install, to the sink and back; the others are
// shown in examples/clients.

import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { createOutbox, type Outbox, type Worker } from '../../src/index.ts'
import { type MemorySink, memorySink } from '../../src/testing/index.ts'
import type { Transaction } from './exercise-tx.ts'

const db = useDatabase()
const placed = (id: string) => ({
  type: 'order.placed',
  aggregate: ['order', id] as const,
  payload: { id },
})

let outbox: Outbox
let sink: MemorySink
let sql: postgres.Sql
let worker: Worker | undefined

beforeAll(async () => {
  sink = memorySink()
  outbox = createOutbox({ pool: db.pool })
  outbox.subscribe('orders', { revision: 1, types: ['order.*'], sink })
  sql = postgres(db.url, { max: 2 })
  worker = await outbox.start()
})
afterAll(async () => {
  await worker?.stop()
  await sql.end()
})

const libraries: { library: string; transaction: Transaction; outside: () => unknown }[] = [
  {
    library: 'pg',
    transaction: (fn) => outbox.transaction(fn),
    outside: () => db.pool,
  },
  {
    library: 'postgres.js',
    transaction: (fn) => sql.begin(fn),
    outside: () => sql,
  },
]

describe.each(libraries)('$library', ({ library, transaction, outside }) => {
  const delivered = () => {
    const ids = sink.accepted.map((event) => event.aggregateId)
    return ids.filter((id) => id.startsWith(library)).toSorted()
  }
  const stored = async (id: string) => (await db.query('select from outbox.event where aggregate_id = $1', [id])).length

  it('delivers after the commit', async () => {
    const id = `${library}-committed`
    await transaction(async (tx) => {
      expect(await outbox.emit(tx, placed(id))).toEqual([expect.any(BigInt)])
    })
    await eventually(() => expect(delivered()).toEqual([id]))
  })

  it('delivers nothing after a rollback', async () => {
    const id = `${library}-rolled-back`
    const failing = transaction(async (tx) => {
      await outbox.emit(tx, placed(id))
      throw new Error('changed my mind')
    })
    await expect(failing).rejects.toThrow('changed my mind')
    expect(await stored(id)).toBe(0)
  })

  it('takes many events in one call, and answers in their order', async () => {
    const ids = Array.from({ length: 100 }, (_, n) => `${library}-batch-${n}`)
    await transaction(async (tx) => {
      const given = await outbox.emit(tx, ids.map(placed))
      expect(given).toHaveLength(100)
      expect(given).toEqual(given.toSorted((a, b) => Number(a - b)))
    })
    await eventually(() => expect(delivered()).toEqual([...ids, `${library}-committed`].toSorted()))
  })

  it('refuses to emit outside a transaction', async () => {
    const refused = outbox.emit(outside(), placed(`${library}-outside`))
    await expect(refused).rejects.toMatchObject({ code: 'HMD_EMIT_OUTSIDE_TRANSACTION' })
  })

  it('turns what the database refuses into the coded error', async () => {
    const id = `${library}-key`
    const event = { ...placed(id), key: id }
    const failing = transaction(async (tx) => {
      await outbox.emit(tx, event)
      await outbox.emit(tx, { ...event, payload: { id: 'another' } })
    })
    await expect(failing).rejects.toMatchObject({ code: 'HMD_IDEMPOTENCY_CONFLICT' })
    expect(await stored(id)).toBe(0)
  })
})

describe('what the functions refuse, whoever calls them', () => {
  const long = 'x'.repeat(513)
  const one = (id: string, payload = '{}') =>
    db.query(`select outbox.emit_one('a.b', 'a', $1, $2, 1::smallint, null, null)`, [id, payload])
  const many = (id: string, version = 1, key: string | null = null) =>
    db.query(
      `select outbox.emit_many('{a.b,a.b}', '{a,a}', array['1', $1], '{1,2}', array[1, $2]::smallint[], null, null,
         case when $3::text is not null then array[null, $3::text] end)`,
      [id, version, key],
    )

  it.each([
    ['an empty id', () => one('')],
    ['a long id', () => one(long)],
    ['a separator in the id', () => one('a\x1eb')],
    ['a large payload', () => one('1', JSON.stringify('x'.repeat(262_145)))],
    ['an empty id among many', () => many('')],
    ['a separator among many', () => many('a\x1fb')],
    ['a version of 0 among many', () => many('1', 0)],
    ['a separator in a key', () => many('1', 1, 'a\x1eb')],
  ])('%s', async (_what, emitting) => {
    const before = await db.query('select count(*) from outbox.event')
    await expect(emitting()).rejects.toMatchObject({ code: expect.stringMatching(/^HM00[23]$/) })
    expect(await db.query('select count(*) from outbox.event')).toEqual(before)
  })
})

it('prepares its statements by name where that is allowed', async () => {
  const pool = new pg.Pool({ connectionString: db.url, max: 4 })
  const heard = memorySink()
  const prepared = createOutbox({ pool, prepare: true })
  prepared.subscribe('prepared', { revision: 1, types: ['order.*'], sink: heard })
  const running = await prepared.start({ listen: false, concurrency: 1 })
  const names = await prepared.transaction(async (tx) => {
    await prepared.emit(tx, placed('prepared-1'))
    await prepared.emit(tx, [placed('prepared-2'), placed('prepared-3')])
    const { rows } = await tx.query(`select name from pg_prepared_statements order by name`)
    return rows.map(({ name }) => name)
  })
  expect(names).toEqual(expect.arrayContaining(['hermod_emit_many', 'hermod_emit_one']))
  await eventually(() => expect(heard.accepted).toHaveLength(3))
  await running.stop()
  await pool.end()
})
