// Sources: pages by keys of any type, rows by their ids, what belongs to the index, and bad input.

import { beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { createOutbox } from '../../src/index.ts'
import { slotOf } from '../../src/journeys/schedule.ts'
import type { IndexSource, SourceDocument } from '../../src/journeys/source.ts'
import { querySource, tableSource } from '../../src/journeys/sources.ts'
import { postgresSearch } from '../../src/sinks/search/postgres.ts'

const db = useDatabase()
const pool = () => db.pool as never

beforeAll(async () => {
  await db.query(`
    create table by_uuid (id uuid primary key, n int);
    insert into by_uuid select md5(n::text)::uuid, n from generate_series(1, 25) n;
    create table by_text (id text primary key, at timestamptz);
    insert into by_text select 'k' || chr(96 + n) || chr(128512 + n), '2027-01-10 10:00+02' from generate_series(1, 25) n;
    create table by_two (tenant bigint, "no 2" text, n int, primary key (tenant, "no 2"));
    insert into by_two select 9007199254740993 + n % 3, 'it''s ' || n, n from generate_series(1, 25) n`)
})

async function all(source: IndexSource, limit: number): Promise<SourceDocument[]> {
  const found: SourceDocument[] = []
  let after: string | undefined
  do {
    const page = await source.page(pool(), { after, limit })
    found.push(...page.documents)
    after = page.next
  } while (after !== undefined)
  return found
}

describe('pages and ids', () => {
  it.each([
    ['uuid', tableSource({ table: 'by_uuid' })],
    ['text', tableSource({ table: 'public.by_text' })],
    ['two columns', tableSource({ table: 'by_two', key: ['tenant', 'no 2'] })],
  ])('%s: every row once, in pages of any size, and found again by id', async (_, source) => {
    for (const limit of [1, 7, 25, 100]) {
      const ids = (await all(source, limit)).map(({ id }) => id)
      expect(new Set(ids).size).toBe(25)
      expect(ids).toHaveLength(25)
    }
    const [one, , three] = await all(source, 10)
    const ids = [one?.id as string, 'no such id', three?.id as string, '["x",1]', '{']
    expect((await source.find(pool(), ids)).documents.map(({ id }) => id).sort()).toEqual([one?.id, three?.id].sort())
    expect(await source.count(pool())).toBe(25)
    expect(await source.sample(pool(), 5)).toHaveLength(5)
  })

  it('the same ids and the same text as capturing the table gives', async () => {
    const outbox = createOutbox({ pool: db.pool })
    for (const [table, source] of [
      ['by_text', tableSource({ table: 'by_text' })],
      ['by_two', tableSource({ table: 'by_two', key: ['tenant', 'no 2'] })],
    ] as const) {
      await outbox.watch(table, { type: table })
      await db.query(
        `begin; set local timezone = 'Asia/Tokyo'; update ${table} set ${table === 'by_text' ? "at = at + interval '1 hour'" : 'n = n + 1'}; commit`,
      )
      const events = await db.query<{ id: string; payload: unknown }>(
        'select aggregate_id as id, payload from outbox.event where aggregate_type = $1',
        [table],
      )
      const documents = new Map((await all(source, 10)).map(({ id, json }) => [id, json]))
      expect(documents.size).toBe(25)
      for (const { id, payload } of events) {
        expect(JSON.parse(documents.get(id) ?? 'null')).toEqual(JSON.parse(JSON.stringify(payload)))
      }
    }
  })
})

describe('what belongs to the index', () => {
  it('where, columns, map; what map refuses is told by its id', async () => {
    const few = tableSource({ table: 'by_uuid', where: 'n <= 3', columns: ['n'] })
    expect((await all(few, 2)).map(({ json }) => JSON.parse(json).n).sort()).toEqual([1, 2, 3])
    const mapped = querySource({
      query: 'select id, n * 10 as tens from by_uuid where n < 4',
      map: ({ tens }) => {
        if (tens === 20) throw new Error('not a good one')
        return tens === 10 ? undefined : { tens }
      },
    })
    const page = await mapped.page(pool(), { limit: 10 })
    expect(page).toMatchObject({ rows: 3, refused: [{ why: 'not a good one' }] })
    expect(page.documents.map(({ json }) => json)).toEqual(['{"tens":30}'])
  })

  it('a declaration that cannot work is refused with what to do', async () => {
    const says = (source: IndexSource) =>
      source.page(pool(), { limit: 1 }).catch(({ code, message }) => `${code}: ${message}`)
    expect(await says(tableSource({ table: 'nowhere' }))).toMatch(
      /^HMD_SOURCE_INVALID: the source nowhere cannot be read: relation "nowhere" does not exist/,
    )
    expect(await says(tableSource({ table: 'by_uuid', key: 'nr' }))).toMatch(/HMD_SOURCE_INVALID.*nr/)
    expect(() => tableSource({ tabel: 'x' } as never)).toThrow(/did you mean table\?/)
    expect(() => querySource({ query: 'select 1;' })).toThrow(/must not end with ;/)
    const outbox = createOutbox({ pool: db.pool })
    const options = {
      engine: postgresSearch({ pool: db.pool }),
      source: tableSource({ table: 'by_uuid' }),
      definition: { fields: { n: { kind: 'number' } } },
      subscription: 'search',
    } as const
    expect(() => outbox.index('Bad Name', options)).toThrow()
    const bad = (schedule: object) => () => outbox.index('items', { ...options, schedule } as never)
    expect(bad({ rebuild: {} })).toThrow(/schedule.rebuild must have either everyMs or dailyAt/)
    expect(bad({ verify: { dailyAt: '25:00' } })).toThrow(/must be a time \(UTC\) like 03:30/)
    outbox.index('items', options)
    expect(() => outbox.index('items', options)).toThrow(/declared twice/)
  })
})

describe('schedules', () => {
  const at = (text: string) => Date.parse(`2027-03-01T${text}:00Z`)

  it('all workers agree on the slot; a daily one that is too late waits for the next day', () => {
    expect(slotOf({ everyMs: 3_600_000 }, at('10:59'))?.toISOString()).toBe('2027-03-01T10:00:00.000Z')
    expect(slotOf({ dailyAt: '03:30' }, at('03:30'))?.toISOString()).toBe('2027-03-01T03:30:00.000Z')
    expect(slotOf({ dailyAt: '03:30' }, at('04:29'))?.toISOString()).toBe('2027-03-01T03:30:00.000Z')
    expect(slotOf({ dailyAt: '03:30' }, at('04:31'))).toBeUndefined()
    expect(slotOf({ dailyAt: '23:45' }, at('00:10'))?.toISOString()).toBe('2027-02-28T23:45:00.000Z')
  })
})
