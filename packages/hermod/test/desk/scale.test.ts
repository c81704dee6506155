// At 200,000 events nothing of the desk reads `event` or `log` from end to end, and stats stay fast.

import { beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { type Stage, stage } from './stage.ts'

const db = useDatabase()
const count = 200_000
let s: Stage

beforeAll(async () => {
  s = await stage(db, { wide: {}, narrow: { types: ['memo.*'] }, single: { lanes: 1 } })
  await db.query(
    `insert into outbox.event (type, aggregate_type, aggregate_id, payload, bytes)
     select case when n % 10 = 0 then 'memo.sent' else 'document.updated' end, 'document', (n % 20000)::text, '{}', 2
       from generate_series(1, ${count}) n`,
  )
  await s.number()
  // What autovacuum does in the background of a real server.
  await db.query('vacuum (analyze) outbox.event, outbox.log, outbox.delivery')
})

const SEQUENTIAL = `select relname, seq_tup_read::int as read from pg_stat_xact_user_tables
  where schemaname = 'outbox' and (relname like 'event%' or relname like 'log%')`

/** Rows of event and log that a statement reads by sequential scans, and its answer. */
async function scansOf(sql: string, params: unknown[] = []) {
  const client = await db.pool.connect()
  try {
    await client.query('begin')
    // The counters may still hold what this connection did before: the vacuum above.
    const before = new Map((await client.query(SEQUENTIAL)).rows.map((row) => [row.relname, row.read]))
    const { rows } = await client.query(sql, params)
    const after = (await client.query(SEQUENTIAL)).rows
    const scans = after.filter(({ relname, read }) => read - (before.get(relname) ?? 0) > 1000)
    return { rows, scans }
  } finally {
    await client.query('rollback')
    client.release()
  }
}

/** The quickest of 15 each, in turn: whatever else the machine does meets both. */
async function bestOf(...works: (() => Promise<unknown>)[]): Promise<number[]> {
  const best = works.map(() => Number.POSITIVE_INFINITY)
  for (let n = 0; n < 15; n++) {
    for (const [index, work] of works.entries()) {
      const t0 = performance.now()
      await work()
      best[index] = Math.min(best[index] as number, performance.now() - t0)
    }
  }
  return best
}

describe(`${count} events`, () => {
  it('status of one event is index-driven', async () => {
    for (const id of [1, 77_777, count]) {
      const { rows, scans } = await scansOf('select * from outbox.status where event_id = $1', [id])
      expect(rows.length).toBeGreaterThanOrEqual(2)
      expect(scans).toEqual([])
    }
    const plan = await db.query<{ 'QUERY PLAN': string }>(
      'explain (costs off) select * from outbox.status where event_id = 77777',
    )
    const text = plan.map((line) => line['QUERY PLAN']).join('\n')
    expect(text).not.toMatch(/Seq Scan on (event|log)_/)
    const t0 = performance.now()
    for (let n = 0; n < 50; n++) await db.query('select * from outbox.status where event_id = $1', [n * 3_000 + 1])
    expect((performance.now() - t0) / 50).toBeLessThan(20)
  })

  it('stats: right', async () => {
    const stats = await s.outbox.stats()
    const [narrow, single, wide] = stats.subscriptions
    expect(wide).toMatchObject({ name: 'wide', pendingEstimated: true })
    expect(Math.abs((wide?.pending ?? 0) - count)).toBeLessThan(count / 20)
    expect(Math.abs((narrow?.pending ?? 0) - count / 10)).toBeLessThan(count / 100)
    expect(Math.abs((single?.pending ?? 0) - count)).toBeLessThan(count / 20)
  })

  it('stats: below 50 ms', async () => {
    await db.query(`delete from outbox.subscription where name in ('narrow', 'single')`)
    // On a machine that others use too, the same rows counted bare, in about as many statements, are the measure.
    const bare = `select count(*) from generate_series(0, 15) i cross join lateral
      (select g.pos from outbox.log g where g.lane = i order by g.pos limit 6250) g`
    const [ours = 0, theirs = 0] = await bestOf(
      () => s.outbox.stats(),
      async () => {
        await db.query(bare)
        for (let n = 0; n < 30; n++) await db.query('select 1')
      },
    )
    console.log(`stats at ${count} pending: ${ours.toFixed(1)} ms; bare count: ${theirs.toFixed(1)} ms`)
    expect(ours).toBeLessThan(Math.max(50, 2 * theirs))
  })

  it('a page of events, by anything the log knows, reads little', async () => {
    for (const filter of [
      {},
      { type: 'memo.*' },
      { state: 'pending' as const },
      { aggregate: ['document', 4321] as const },
    ]) {
      const t0 = performance.now()
      expect((await s.outbox.find(filter, { limit: 10 })).events).toHaveLength(10)
      expect(performance.now() - t0).toBeLessThan(2_000)
    }
    expect((await s.outbox.event(1_234n))?.neighbours.length).toBeGreaterThan(0)
  })
})
