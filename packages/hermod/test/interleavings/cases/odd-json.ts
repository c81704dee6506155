// JSON that PostgreSQL stores and cannot read back, and everything else that is odd and comes through SQL: refused
// at the door with a code, or carried like any other event. Nothing of it stops a loop.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { sqlState } from './script.ts'
import { quiet, stage } from './stage.ts'

const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
const many = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [`h${n}`, ''])))

/** Payloads that are refused, and how. */
const REFUSED: readonly [payload: string, sqlState: string][] = [
  [String.raw`{"a":"\u0000"}`, 'HM005'],
  [String.raw`{"\u0000":1}`, 'HM005'],
  [String.raw`{"a":["\\\u0000"]}`, 'HM005'],
  [String.raw`{"a":"\ud800"}`, 'HM005'],
  [String.raw`{"a":"\udc00\ud800"}`, 'HM005'],
  [deep(65), 'HM003'],
  [`{"a":${deep(1_000)}}`, 'HM003'],
]

const HEADERS_REFUSED = [
  'null',
  '5',
  '["a"]',
  '{"a":1}',
  '{"a":null}',
  '{"a b":"x"}',
  String.raw`{"a":"\u0000"}`,
  String.raw`{"a":"x\ny"}`,
  '{"A":"1","a":"2"}',
  `{"a":"${'x'.repeat(2_049)}"}`,
  many(65),
]

/** Odd, and well. */
const TAKEN: readonly (readonly [payload: string, headers: string | null])[] = [
  [String.raw`{"a":"\\u0000", "b":"\ud83d\ude00", "c":"\u001e\u001f"}`, null],
  ['{"a":1e400}', ' {"Trace":"x"}'],
  ['{"a":1,"a":2}', many(64)],
  [deep(64), '{}'],
  [`{"a":"${'['.repeat(100)}","b":[${Array.from({ length: 99 }, () => '{}').join(',')}]}`, null],
]

/** Every way an event comes in through SQL. */
const DOORS = [
  `select outbox.emit('doc.changed', 'doc', $1, $2::json, $3::json)`,
  `select outbox.emit('doc.changed', 'doc', $1, $2::json, $3::json, null, $1)`,
  `select outbox.emit_one('doc.changed', 'doc', $1, $2, 1::smallint, $3, null)`,
  `select outbox.emit_many(array['doc.changed'], array['doc'], array[$1], array[$2], null, array[$3])`,
  `select outbox.emit_many(array['doc.changed'], array['doc'], array[$1], array[$2], null, array[$3], null, array[$1])`,
]

export const nulThroughSql = defineCase('nul-through-sql', async ({ db }) => {
  for (const [at, door] of DOORS.entries()) {
    for (const [payload, state] of REFUSED) {
      const found = await sqlState(db.query(door, ['x', payload, null]))
      expect(found, `${payload.slice(0, 30)} through ${door.slice(7, 30)}`).toBe(state)
    }
    for (const [n, [payload, headers]] of TAKEN.entries()) await db.query(door, [`${at}-${n}`, payload, headers])
  }
  for (const headers of HEADERS_REFUSED) {
    expect(await sqlState(db.query(DOORS[0] as string, ['x', '{}', headers])), headers.slice(0, 30)).toBe('HM002')
  }
  const unsafe = [`E'a\\x1eb'`, `E'a\\x1fb'`, `''`].map((id) => `select outbox.emit('doc.changed', 'doc', ${id})`)
  for (const sql of unsafe) expect(await sqlState(db.query(sql))).toBe('HM002')
  const never = `select outbox.emit('doc.changed', 'doc', '1', not_before => 'infinity')`
  expect(await sqlState(db.query(never))).toBe('HM002')
})

function isFlat(headers: object): boolean {
  return headers?.constructor === Object && Object.values(headers).every((value) => typeof value === 'string')
}

/** What was taken is delivered, dies, is copied by retention, and is delivered after all. */
export const oddJson = defineCase('nul-through-sql: what is taken stops no loop', async (env) => {
  const s = await stage(env)
  let refusing = true
  const seen: string[] = []
  const given: unknown[] = []
  const sink = {
    name: 'choosy',
    deliver: async (events: readonly { aggregateId: string; payload: unknown; headers: object }[]) =>
      events.map(({ aggregateId, payload, headers }) => {
        given.push(typeof payload === 'object' && isFlat(headers))
        if (refusing && aggregateId.startsWith('odd')) return s.say.rejected({ message: 'no' })
        seen.push(aggregateId)
        return s.say.delivered()
      }),
  }
  const errors: string[] = []
  const listener = { error: ({ error }: { error: unknown }) => void errors.push(String(error)), delivery: () => {} }
  const outbox = s.outbox(sink as never, { listener })
  for (const [n, [payload, headers]] of TAKEN.entries()) {
    await s.db.query(DOORS[0] as string, [`odd-${n}`, payload, headers])
  }
  // Past the door: as a table owner may write it.
  await s.db.query(`insert into outbox.event (bytes, type, aggregate_type, aggregate_id, payload, headers)
    select 4, 'doc.changed', 'doc', 'odd-h' || n, 'null', h
      from unnest(array['null', '5', '[1]', '{"traceparent":7}']::json[]) with ordinality u(h, n)`)
  const worker = await outbox.start(quiet)
  const dead = () => outbox.deadLetters().then((rows) => rows.length === TAKEN.length + 4)
  await eventually(dead, { what: 'dead letters' })
  await s.db.query('select outbox.copy_open(1, 1000000, 100)')
  await s.db.query('delete from outbox.event')
  refusing = false
  await outbox.retry('all', { state: 'dead' }, { actor: 'me' })
  await s.emit(['after'])
  await eventually(() => seen.length === TAKEN.length + 5, { what: 'all of them' })
  await worker.stop()
  expect(given, 'payloads and headers given to a sink').not.toContain(false)
  expect(errors, 'errors of the worker').toEqual([])
  await holds(s.db, 'I5')
})

/** A watched row whose json column holds what nobody can read: the write is refused, with a code. */
export const watchedNul = defineCase('nul-through-sql: a watched table', async ({ db, engine }) => {
  await db.query('create table note (id int primary key, body json)')
  await engine.createOutbox({ pool: db.pool }).watch('note', { type: 'note' })
  const write = (body: string) => db.query('insert into note values (1, $1)', [body])
  for (const body of [String.raw`{"a":"\u0000"}`, String.raw`{"a":"\ud800"}`]) {
    expect(await sqlState(write(body)), body).toBe('HM005')
  }
  expect(await sqlState(db.query(`set hermod.headers = '{"a":"\\u0000"}'; insert into note values (2, null)`))).toBe(
    'HM002',
  )
  await write(String.raw`{"a":"\u001e"}`)
  expect((await db.query('select numbered from outbox.sequence()'))[0]).toEqual({ numbered: 1 })
})
