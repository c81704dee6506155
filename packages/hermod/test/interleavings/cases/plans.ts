// The plans of the hot path with 200,000 rows behind it: every statement the verbs run is explained
// by the server itself, and none may read event or log as a whole, by whichever index.

import pg from 'pg'
import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import { buffersOf, emit, emitAlone, STEP, step, value } from './script.ts'

const rows = 200_000
/** More than a batch and the rows scanned behind one lane's cursor; far less than a table. */
const readMax = 15_000

const explained = [
  'session_preload_libraries=auto_explain',
  'auto_explain.log_min_duration=0',
  'auto_explain.log_nested_statements=on',
  'auto_explain.log_analyze=on',
  'auto_explain.log_timing=off',
  'auto_explain.log_level=notice',
]

/** Half in one transaction, half in 100: few ids made many rows, and statistics know it. */
async function fill({ db }: Env): Promise<void> {
  const insert = (count: number) =>
    `insert into outbox.event (type, aggregate_type, aggregate_id, payload, bytes)
     select 'doc.' || (array['updated', 'read', 'deleted'])[1 + n % 3], 'doc', 'd' || n % 5000, '{}', 2
       from generate_series(1, ${count}) n`
  await db.query(insert(rows / 2))
  await db.query(`do $$ begin for i in 1 .. 100 loop ${insert(rows / 200)}; commit; end loop; end $$`)
  while (await value(db, 'select more from outbox.sequence()'));
}

/** Plans are made once and kept: this one while the tables were as good as empty. */
async function oldPlan(env: Env): Promise<void> {
  const { db } = env
  const stepper = await session(db, 'stepper')
  const late = await session(db, 'late')
  const producer = await session(db, 'producer')
  const pages: number[] = []
  const lateCommit = async () => {
    await late.begin()
    await emit(late, 'late')
    await emitAlone(producer, 'now')
    await step(stepper)
    await late.commit()
    pages.push(await buffersOf(stepper, STEP))
  }
  await lateCommit()
  await db.query('analyze outbox.event')
  await lateCommit()
  await fill(env)
  await lateCommit()
  await lateCommit()
  expect(pages.at(-1), `pages read by steps with an old plan: ${pages}`).toBeLessThan(200)
}

/** Lines of a plan that read a leaf of event or log: as a whole, or more of it than anyone needs. */
function wideReads(plan: string): string[] {
  const lines = plan.split('\n')
  return lines.flatMap((line, at) => {
    const scan = /(Seq Scan|Index Scan|Index Only Scan|Bitmap Heap Scan).* on (event|log)_\d+/.exec(line)
    if (!scan) return []
    const actual = /actual rows=([\d.]+) loops=(\d+)/.exec(line)
    const returned = Number(actual?.[1] ?? 0) * Number(actual?.[2] ?? 0)
    const removed = /Rows Removed by Filter: (\d+)/.exec(lines.slice(at + 1, at + 4).join('\n'))
    const read = returned + Number(removed?.[1] ?? 0) * Number(actual?.[2] ?? 1)
    const whole = scan[1] === 'Seq Scan' && actual !== null
    return whole || read > readMax ? [`${line.trim()} (rows read: ${read})`] : []
  })
}

export const plans = defineCase('plans at 200,000 rows', async (env) => {
  const { db, engine } = env
  await oldPlan(env)
  await db.query('analyze outbox.event; analyze outbox.log')

  const found: string[] = []
  let statements = 0
  const options = explained.map((setting) => `-c ${setting}`).join(' ')
  const pool = new pg.Pool({ connectionString: db.url, max: 6, options })
  db.closeAtEnd(() => pool.end())
  pool.on('connect', (client) => {
    client.on('notice', ({ message = '' }) => {
      statements++
      const wide = wideReads(message)
      if (wide.length > 0) found.push(`${message.split('\n')[1]}\n  ${wide.join('\n  ')}`)
    })
  })

  // One lane's worth of everything: all types from the middle, one type from the beginning, a retry.
  const outbox = engine.createOutbox({ pool })
  const refuse = new Set(['d17'])
  const sink = engine.testing.memorySink({
    answer: ({ aggregateId }) => (refuse.delete(aggregateId) ? { outcome: 'retry', code: 'once' } : undefined),
  })
  const common = { revision: 1, batch: { count: 1_000 }, retry: { baseMs: 1, jitter: 0 } }
  const from = { position: rows - 5_000 }
  outbox.subscribe('all', { ...common, types: ['*'], from, sink })
  const sparse = engine.testing.memorySink()
  outbox.subscribe('sparse', { ...common, types: ['doc.renamed'], from, sink: sparse })
  const single = engine.testing.memorySink()
  outbox.subscribe('single', { ...common, types: ['doc.read'], lanes: 1, from, sink: single })

  const late = await session(db, 'late')
  await late.begin()
  await emit(late, 'late')
  await outbox.transaction((tx) => outbox.emit(tx, { type: 'doc.renamed', aggregate: ['doc', 'd1'], payload: {} }))
  await outbox.runOnce({ upkeep: false, concurrency: 2 })
  await late.commit()
  await outbox.runOnce({ upkeep: false, concurrency: 2 })
  expect(sink.accepted.length).toBeGreaterThanOrEqual(5_002)
  expect(sparse.accepted).toHaveLength(1)
  expect(single.accepted.length).toBeGreaterThan(1_600)
  expect(statements, 'the script: the server explained what it ran').toBeGreaterThan(100)
  expect(found).toEqual([])

  await holds(db, 'I1', 'I5')
})
