// Rare edges: events that are gone, very many due retries, very old tasks, a replay that begins while rows are trimmed.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { session } from '../../../../../test/support/session.ts'
import { value } from './script.ts'
import { labels, quiet, stage } from './stage.ts'

const dayMs = 24 * 3_600_000

/** A retry whose event is gone is a dead letter, and never sent without type and payload. */
export const goneOnRetry = defineCase('event-gone: on retry', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink({ answer: () => s.say.rejected() })
  const outbox = s.outbox(sink)
  await s.change('a')
  await outbox.runOnce(quiet)
  const calls = sink.calls.length
  await s.db.query('delete from outbox.event')
  await outbox.retry('all', { state: 'dead' }, { actor: 'me' })
  await outbox.runOnce(quiet)
  expect(sink.calls.length, 'calls').toBe(calls)
  expect(await s.db.query('select state, code from outbox.delivery')).toEqual([
    { state: 'dead', code: 'HMD_EVENT_GONE' },
  ])
})

/** The same for a ledger, whose rows are written before anything is sent. */
export const goneInLedger = defineCase('event-gone: ledger', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink({ capabilities: { ledger: true } })
  const outbox = s.outbox(sink, { subscription: { types: ['doc.*'] } })
  await s.change('a', 'b')
  await s.db.query(`delete from outbox.event where aggregate_id = 'a'`)
  await outbox.runOnce(quiet)
  expect(labels(sink)).toEqual(['b@1'])
  expect(await s.db.query('select state, code from outbox.delivery order by pos'), 'its row').toEqual([
    { state: 'dead', code: 'HMD_EVENT_GONE' },
    { state: 'delivered', code: null },
  ])
})

/** All that a former owner may have been sending is noted: a batch may hold 5,000 retries. */
export const manyDue = defineCase('late-write-after-takeover: 3,000 retries were due', async (env) => {
  const s = await stage(env)
  await s.outbox(env.engine.testing.memorySink()).runOnce(quiet)
  await s.db.query(
    `insert into outbox.delivery (subscription, lane, pos, event_id, aggregate_type, aggregate_id, hash, state, next_attempt_at, updated_at)
     select 'all', 3, n, n, 'doc', 'd' || n, outbox.hash('doc', 'd' || n), 'retrying', outbox.clock(), outbox.clock()
       from generate_series(1, 3000) n`,
  )
  const claim = `select lane from outbox.claim('all', 1, $1, 16, 1000, 1000)`
  expect(await s.db.query(claim, ['a'])).toEqual([{ lane: 3 }])
  await s.clock.advance(2_000)
  expect(await s.db.query(claim, ['b'])).toEqual([{ lane: 3 }])
  expect(await value(s.db, 'select cardinality(again_hashes) from outbox.lane where lane = 3')).toBe(3_000)
})

/** A task that was parked a month ago can still be settled. */
export const oldTask = defineCase('settle: a call of a month ago', async (env) => {
  const s = await stage(env)
  const { settle } = await env.engine.load<typeof import('../../../src/flow/settle.ts')>('flow/settle.ts')
  await s.outbox(env.engine.testing.memorySink()).runOnce(quiet)
  const [id] = await s.inLane(3, 1)
  await s.change(id as string)
  await s.db.query(`select from outbox.claim('all', 1, 'a', 16, 45000)`)
  const counts = { sent: 1, delivered: 1, superseded: 0, failed: 0, rows: [], blocked: [], done: [], beyond: [] }
  const settled = await settle(s.db.pool, { name: 'all', revision: 1 } as never, 'a', {
    lanes: [{ lane: 3, fence: 1n, from: 0n, to: 1n, ...counts }],
    call: { startedAgoMs: 30 * dayMs, durationMs: 30 * dayMs, worker: 'a', rehearsed: false },
  })
  expect([...settled]).toEqual([3])
})

/** A replay that is just being created keeps what it needs. */
export const trimBesideReplay = defineCase('trim-beside-new-replay', async (env) => {
  const s = await stage(env)
  await s.change('a', 'b')
  await s.clock.advance(30 * dayMs)
  await s.change('c')
  const creating = await session(s.db, 'creating')
  await creating.begin()
  await creating.run(`insert into outbox.keep (holder, pos) values ('replay 1', 0)`)
  const trim = `select outbox.trim_log('log_0000000000000000001', 7, null, 100)::int as gone`
  expect(await value(s.db, trim), 'rows trimmed while a replay is created').toBe(0)
  await creating.rollback()
  expect(await value(s.db, trim), 'without it').toBe(2)
})
