// Connections, servers and processes that go away in the middle: nothing is lost.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { auditLanes, holds } from '../../../../../test/support/invariants.ts'
import { gate, labels, quiet, stage, versionsOf, WatchedPool } from './stage.ts'

/** The process dies while the sink is working: its successor sends the batch again. */
export const crashBeforeDelivery = defineCase('crash during delivery', async (env) => {
  const s = await stage(env)
  await auditLanes(s.db)
  const watched = new WatchedPool(s.db.pool)
  const started = gate()
  let dead = false
  const sink = {
    name: 'memory',
    deliver: (_: unknown, { signal }: { signal: AbortSignal }) => {
      dead = true
      started.open()
      return new Promise<undefined>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
      })
    },
  }
  watched.before = () => {
    if (dead) throw new Error('a dead process sends nothing')
  }
  await s.change('a', 'b', 'a')
  const worker = await s.outbox(sink, { pool: watched }).start({ ...quiet, stopGraceMs: 0 })
  await started.opened
  await worker.stop()
  await s.clock.advance(60_000)
  const survivor = env.engine.testing.memorySink()
  await s.outbox(survivor).runOnce(quiet)
  expect(labels(survivor).sort(), 'lost by a crash during delivery').toEqual(['a@1', 'a@2', 'b@1'])
  await holds(s.db, 'I7', 'I8')
})

/** Every connection of the database is cut, again and again, under load. */
export const connectionsCut = defineCase('lost connections', async (env) => {
  const s = await stage(env)
  await auditLanes(s.db)
  const sink = env.engine.testing.memorySink()
  const outbox = s.outbox(sink, { subscription: { batch: { count: 20 } } })
  const worker = await outbox.start({ ...quiet, listen: true })
  const ids = Array.from({ length: 20 }, (_, n) => `d${n}`)
  for (let round = 0; round < 15; round++) {
    await eventually(() => s.change(...ids).then(() => true), { what: 'a change to commit' }).catch(() => {})
    await s.db.admin.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()',
      [s.db.name],
    )
  }
  await eventually(async () => (await s.open()) === 0, {
    timeoutMs: 20_000,
    what: 'everything to arrive',
  })
  await worker.stop()
  const rows = await s.db.query<{ id: string; versions: number[] }>(
    `select e.aggregate_id as id, array_agg((e.payload ->> 'v')::int order by l.pos) as versions
       from outbox.log l join outbox.event e on e.id = l.event_id group by 1`,
  )
  for (const { id, versions } of rows) {
    const sent = versionsOf(sink, id)
    expect(
      versions.filter((v) => !sent.includes(v)),
      `lost versions of ${id}`,
    ).toEqual([])
    const ahead = sent.filter((v, at) => at > 0 && v > Math.max(...sent.slice(0, at)) + 1)
    expect(
      ahead.filter((v) => versions.includes(v - 1)),
      `order of ${id}`,
    ).toEqual([])
  }
  await holds(s.db, 'I1', 'I7', 'I8')
  expect(await s.held(), 'lanes still held').toBe(0)
})
