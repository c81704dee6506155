// What a worker has cached from the database falls with the epoch: a failover may have lost a tail and what was named in it.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { session } from '../../../../../test/support/session.ts'
import type { OutboxEvent } from '../../../src/event.ts'
import { gate, quiet, type Stage, stage, WatchedPool } from './stage.ts'

function recorder() {
  const seen: string[] = []
  const sink = async (events: readonly OutboxEvent[]) => {
    for (const { type, aggregateType, aggregateId } of events) seen.push(`${type} ${aggregateType} ${aggregateId}`)
  }
  return { seen, sink }
}

const emit = (s: Stage, type: string, aggregate: string, id: string) =>
  s.db.query(`select outbox.emit($1, $2, $3, '{}')`, [type, aggregate, id])

/** As a standby that was promoted without its last seconds: rows above this position were never there, the timeline is new. */
async function loseTail(s: Stage, above: bigint): Promise<void> {
  const pos = String(above)
  await s.db.query('delete from outbox.event e using outbox.log l where l.event_id = e.id and l.pos > $1', [pos])
  await s.db.query('delete from outbox.kind k where k.code > (select max(kind) from outbox.log where pos <= $1)', [pos])
  await s.db.query('delete from outbox.log where pos > $1', [pos])
  await s.db.query('delete from outbox.step where pos > $1', [pos])
  await s.db.query('update outbox.step set timeline = timeline + 1')
}

/** A kind first met in a lost tail; its code is given to another one. No worker here makes the step itself. */
export const kindsAfterEpoch = defineCase('kinds-after-epoch', async (env) => {
  const s = await stage(env)
  const [one, two] = [recorder(), recorder()]
  const numbering = await session(s.db, 'numbering')
  await numbering.run('select pg_advisory_lock(4841297201)')
  const step = () => numbering.run('select * from outbox.sequence()')
  const workers = await Promise.all([
    s.outbox(one.sink, { name: 'one' }).start(quiet),
    s.outbox(two.sink, { name: 'two', subscription: { lanes: 1 } }).start(quiet),
  ])
  await emit(s, 'document.updated', 'document', 'd1')
  await step()
  await emit(s, 'draft.saved', 'draft', 'in the lost tail')
  await step()
  await eventually(() => one.seen.length === 2 && two.seen.length === 2)
  await loseTail(s, 1n)
  await emit(s, 'person.deleted', 'person', 'p7')
  await step()
  await eventually(() => one.seen.length === 3 && two.seen.length === 3)
  for (const worker of workers) await worker.stop()
  const [last] = await s.db.query<{ kind: number; epoch: string }>(
    'select kind, (pos >> 32)::text as epoch from outbox.log order by pos desc limit 1',
  )
  expect(last, 'the script: the code is used again').toEqual({ kind: 2, epoch: '1' })
  expect([one.seen.at(-1), two.seen.at(-1)], 'the type after a failover').toEqual([
    'person.deleted person p7',
    'person.deleted person p7',
  ])
})

/** Read before the failover, named after it: such a batch is read again. */
export const kindsBetween = defineCase('kinds-after-epoch: names asked for after the failover', async (env) => {
  const s = await stage(env)
  const { seen, sink } = recorder()
  const watched = new WatchedPool(s.db.pool)
  const outbox = s.outbox(sink, { pool: watched })
  await outbox.runOnce(quiet)
  await emit(s, 'document.updated', 'document', 'd1')
  await s.step()
  await emit(s, 'draft.saved', 'draft', 'in the lost tail')
  await s.step()
  const asked = gate()
  const lost = gate()
  watched.before = async (text) => {
    if (!text.includes('from outbox.kind') && !text.includes('outbox.kind k')) return
    asked.open()
    await lost.opened
  }
  const worker = await outbox.start({ ...quiet, concurrency: 1 })
  await asked.opened
  await loseTail(s, 1n)
  await emit(s, 'person.deleted', 'person', 'p7')
  await s.step()
  lost.open()
  await eventually(() => seen.some((line) => line.endsWith('p7')))
  await worker.stop()
  const honest = new Set(['document.updated document d1', 'person.deleted person p7'])
  expect(
    seen.filter((line) => !honest.has(line)),
    'delivered under a wrong type',
  ).toEqual([])
})

/** Somebody holds a lane's row while the first step of an epoch is made: numbering goes on, and the lane's fence moves when it is claimed. */
export const epochBesideLock = defineCase('epoch-beside-a-lane-lock', async (env) => {
  const s = await stage(env)
  const { seen, sink } = recorder()
  const outbox = s.outbox(sink)
  const [locked, other] = [await s.inLane(3, 1), await s.inLane(5, 1)].flat() as [string, string]
  await s.change(locked, other)
  await outbox.runOnce(quiet)
  const holder = await session(s.db, 'holder')
  await holder.begin()
  await holder.run(`select from outbox.lane where subscription = 'all' and lane = 3 for update`)
  await s.db.query('update outbox.step set timeline = timeline + 1')
  await s.emit([locked, other])
  const numbered = await s.db.query('select numbered, new_epoch from outbox.sequence()').catch(({ message }) => message)
  expect(numbered, 'the first step of an epoch beside a lock').toEqual([{ numbered: 2, new_epoch: true }])
  const fences = async () => {
    const sql = 'select lane, (fence >> 32)::int as epoch from outbox.lane where lane in (3, 5) order by lane'
    return (await s.db.query<{ lane: number; epoch: number }>(sql)).map(({ lane, epoch }) => `${lane}: ${epoch}`)
  }
  expect(await fences()).toEqual(['3: 0', '5: 1'])
  await holder.commit()
  await outbox.runOnce(quiet)
  expect(seen.map((line) => line.split(' ').at(-1)).sort()).toEqual([locked, locked, other, other].sort())
  expect(await fences(), 'fences are above all lost ones').toEqual(['3: 1', '5: 1'])
})
