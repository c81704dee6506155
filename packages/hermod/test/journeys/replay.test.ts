// Replay as an operator asks for it: where from, which events, how fast; refused with the valid range.

import { describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import type { ReplayOptions } from '../../src/index.ts'
import { BY, docs, type Stage, stage } from '../desk/stage.ts'

const db = useDatabase()
const fast = { upkeep: false, listen: false, pollMs: 10, busyPollMs: 5 }

type Filter = Partial<ReplayOptions>

/** Ids of what a replay sends, in order of position. */
async function resent(s: Stage, name: string, filter: Filter): Promise<string[]> {
  s.sinks[name]?.clear()
  const { id } = await s.outbox.journeys.replay(name, { ...BY, ...filter })
  await s.work(name)
  expect(await s.outbox.journeys.show(id)).toMatchObject({ state: 'succeeded' })
  const accepted = [...(s.sinks[name]?.accepted ?? [])]
  accepted.sort((a, b) => Number(a.position - b.position))
  return accepted.map(({ aggregateId }) => aggregateId)
}

describe('which events', () => {
  it('by position, time, type, aggregate type, one document, and the same numbers in the dry run', async () => {
    const s = await stage(db, { which: {} })
    const ids = await s.emit(
      { type: 'document.updated', aggregate: ['document', 'a'], payload: {} },
      { type: 'document.read', aggregate: ['document', 'b'], payload: {} },
      { type: 'person.updated', aggregate: ['person', 'c'], payload: {} },
      { type: 'document.updated', aggregate: ['document', 'b'], payload: {} },
    )
    await s.work('which')
    const [first, , third] = (await Promise.all(ids.map(s.positionOf))) as [bigint, bigint, bigint]
    const cases: [Filter, string[]][] = [
      [{ from: first }, ['a', 'b', 'c', 'b']],
      [{ from: third }, ['c', 'b']],
      [{ from: first, to: third }, ['a', 'b', 'c']],
      [{ from: first, types: ['document.updated'] }, ['a', 'b']],
      [{ from: first, types: ['person.*', 'document.read'] }, ['b', 'c']],
      [{ from: first, aggregates: ['person'] }, ['c']],
      [{ from: first, aggregate: ['document', 'b'] }, ['b', 'b']],
      [{ from: first, aggregate: ['document', 'nobody'] }, []],
    ]
    for (const [filter, expected] of cases) {
      const plan = await s.outbox.journeys.plan('which', filter)
      expect(plan, JSON.stringify(filter, String)).toMatchObject({ sending: expected.length })
      expect(await resent(s, 'which', filter)).toEqual(expected)
    }
    const since = new Date(Date.now() - 3_600_000)
    expect((await s.outbox.journeys.plan('which', { since })).matching).toBeGreaterThanOrEqual(4)
    await db.query(`update outbox.step set at = at - interval '2 hours' where pos < $1`, [first])
    expect(await resent(s, 'which', { since })).toEqual(['a', 'b', 'c', 'b'])
  })

  it('a subscription with one lane reads all lanes of the log in order', async () => {
    const s = await stage(db, { single: { lanes: 1, coalesce: 'latest' } })
    const [first] = await s.emit(...docs('x', 'y', 'x', 'z'))
    await s.work('single')
    expect(await resent(s, 'single', { from: await s.positionOf(first) })).toEqual(['y', 'x', 'z'])
  })

  it('what a subscription did not listen to, or an operator gave up, is not sent', async () => {
    const s = await stage(db, { narrow: { types: ['document.updated'] } })
    const ids = await s.emit(...docs('n1', 'n2'), {
      type: 'person.updated',
      aggregate: ['person', 'n3'],
      payload: {},
    })
    await s.work('narrow')
    const [from, given] = (await Promise.all(ids.map(s.positionOf))) as [bigint, bigint]
    await db.query(
      `insert into outbox.delivery (subscription, lane, pos, event_id, aggregate_type, aggregate_id, hash, state, updated_at)
       select 'narrow', l.lane, l.pos, l.event_id, 'document', 'n2', l.hash, 'discarded', now() from outbox.log l where l.pos = $1`,
      [given],
    )
    expect(await resent(s, 'narrow', { from })).toEqual(['n1'])
  })
})

describe('refused', () => {
  it('positions that are not kept name those that are; everything else names its field', async () => {
    const s = await stage(db, { refused: {} })
    await s.emit(...docs('r'))
    await s.work('refused')
    const plan = (filter: unknown) => s.outbox.journeys.plan('refused', filter as never)
    const [{ last } = { last: 0n }] = await db.query<{ last: bigint }>('select max(pos) as last from outbox.log')
    await expect(plan({ from: BigInt(last) + 2n })).rejects.toMatchObject({
      code: 'HMD_REPLAY_RANGE',
      details: { first: '1', last: String(last) },
    })
    for (const [filter, field] of [
      [{}, 'from'],
      [{ from: 1, since: new Date() }, 'from'],
      [{ from: -1 }, 'from'],
      [{ since: 'yesterday' }, 'since'],
      [{ since: new Date(Date.now() + 60_000) }, 'since'],
      [{ from: 1, types: ['Document Updated'] }, 'types[0]'],
      [{ from: 1, aggregate: ['document'] }, 'aggregate'],
      [{ from: 1, ratePerSecond: 0 }, 'ratePerSecond'],
      [{ form: 1 }, 'form'],
    ] as const)
      await expect(plan(filter), JSON.stringify(filter)).rejects.toMatchObject({ field })
    await expect(s.outbox.journeys.plan('refusd', { from: 1n })).rejects.toMatchObject({
      code: 'HMD_SUBSCRIPTION_UNKNOWN',
      message: expect.stringContaining('refused'),
    })
    const unreasoned = { from: 1n, actor: 'ada' } as never
    await expect(s.outbox.journeys.replay('refused', unreasoned)).rejects.toMatchObject({
      field: 'reason',
    })
  })

  it('what retention removed cannot be sent; a replay that waits holds it back', async () => {
    const s = await stage(db, { kept: {} })
    const [id] = await s.emit(...docs('k'))
    await s.work('kept')
    const from = await s.positionOf(id)
    const journey = await s.outbox.journeys.replay('kept', { from, ...BY })
    const holder = () => db.query(`select holder, pos from outbox.keep`)
    expect(await holder()).toEqual([{ holder: `replay ${journey.id}`, pos: String(from - 1n) }])
    await s.outbox.journeys.cancel(journey.id, BY)
    expect(await holder()).toEqual([])
    const client = await db.pool.connect()
    try {
      await client.query('begin')
      await client.query('delete from outbox.log where pos <= $1', [from])
      await expect(
        import('../../src/journeys/replay-options.ts').then(({ wantedReplay }) =>
          wantedReplay(client as never, { from }),
        ),
      ).rejects.toMatchObject({ code: 'HMD_REPLAY_RANGE', details: { first: String(from + 1n) } })
    } finally {
      await client.query('rollback')
      client.release()
    }
  })
})

describe('steered', () => {
  it('a rate is kept; pause stops the lanes, resume goes on, and the whole is sent once', async () => {
    const s = await stage(db, { paced: { batch: { count: 2 } } })
    const names = Array.from({ length: 60 }, (_, n) => `p${n}`)
    const [first] = await s.emit(...docs(...names))
    await s.work('paced')
    const sink = s.sinks.paced
    sink?.clear()
    const from = await s.positionOf(first)
    const options = { from, ratePerSecond: 40, ...BY }
    const { id } = await s.outbox.journeys.replay('paced', options)
    const worker = await s.outbox.start({ ...fast, subscriptions: ['paced'] })
    const startedMs = performance.now()
    const sent = () => sink?.accepted.length ?? 0
    await eventually(() => sent() >= 10)
    await s.outbox.journeys.pause(id, BY)
    await eventually(async () => (await s.outbox.journeys.show(id))?.state === 'paused')
    await eventually(async () => {
      const [state] = await db.query(`select outbox.replay_of('paced') as journey`)
      return state?.journey === null
    })
    expect(sent()).toBeLessThan(60)
    await s.outbox.journeys.resume(id, BY)
    expect(await s.outbox.journeys.wait(id)).toMatchObject({
      state: 'succeeded',
      result: { sent: 60 },
      progress: { done: 60, total: 60 },
    })
    await worker.stop()
    expect(sink?.accepted.map(({ aggregateId }) => aggregateId).sort()).toEqual(names.sort())
    expect(performance.now() - startedMs, '60 events at 40 a second').toBeGreaterThan(1_000)
  })

  it('cancelled in the middle: what is left is not sent, and nothing of it stays behind', async () => {
    const s = await stage(db, { stopped: { batch: { count: 2 } } })
    const [first] = await s.emit(...docs(...Array.from({ length: 40 }, (_, n) => `s${n}`)))
    await s.work('stopped')
    s.sinks.stopped?.clear()
    const options = { from: await s.positionOf(first), ratePerSecond: 20, ...BY }
    const { id } = await s.outbox.journeys.replay('stopped', options)
    const worker = await s.outbox.start({ ...fast, subscriptions: ['stopped'] })
    await eventually(() => (s.sinks.stopped?.accepted.length ?? 0) > 3)
    await s.outbox.journeys.cancel(id, BY)
    expect(await s.outbox.journeys.wait(id)).toMatchObject({ state: 'cancelled' })
    await worker.stop()
    expect(s.sinks.stopped?.accepted.length).toBeLessThan(40)
    const left = await db.query(
      `select (select count(*) from outbox.replay where journey = $1)::int as lanes,
              (select count(*) from outbox.keep where holder = 'replay ' || $1)::int as keeps`,
      [String(id)],
    )
    expect(left).toEqual([{ lanes: 0, keeps: 0 }])
  })

  it('the same request id starts one replay; a second one of the subscription waits its turn', async () => {
    const s = await stage(db, { twice: {} })
    const [first] = await s.emit(...docs('t1', 't2'))
    await s.work('twice')
    s.sinks.twice?.clear()
    const options = { from: await s.positionOf(first), ...BY }
    const one = await s.outbox.journeys.replay('twice', { ...options, requestId: 'once-only' })
    const again = await s.outbox.journeys.replay('twice', { ...options, requestId: 'once-only' })
    expect(again).toMatchObject({ id: one.id, repeated: true })
    const next = await s.outbox.journeys.replay('twice', options)
    await s.work('twice')
    expect(await s.outbox.journeys.show(one.id)).toMatchObject({ state: 'succeeded' })
    await s.work('twice')
    expect(await s.outbox.journeys.show(next.id)).toMatchObject({ state: 'succeeded' })
    expect(s.sinks.twice?.accepted).toHaveLength(4)
  })

  it('a paused subscription makes it wait, and says so', async () => {
    const s = await stage(db, { still: {} })
    const [first] = await s.emit(...docs('w'))
    await s.work('still')
    s.sinks.still?.clear()
    await s.outbox.pause('still', BY)
    const from = await s.positionOf(first)
    const { id } = await s.outbox.journeys.replay('still', { from, ...BY })
    const worker = await s.outbox.start({ ...fast, subscriptions: ['still'] })
    await eventually(async () => (await s.outbox.journeys.show(id))?.progress.waiting === 'still is paused')
    expect(s.sinks.still?.accepted).toEqual([])
    await s.outbox.resume('still', BY)
    expect(await s.outbox.journeys.wait(id)).toMatchObject({ state: 'succeeded' })
    await worker.stop()
    expect(s.sinks.still?.accepted).toHaveLength(1)
  })
})
