// The destination is away, overloaded or wrongly set up: nothing is spent, one probe at a time, and
// everything arrives when it is back.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import type { OutboxEvent } from '../../../src/event.ts'
import type { Outcome } from '../../../src/sinks/outcome.ts'
import { labels, quiet, type Stage, stage, WatchedPool } from './stage.ts'

type Way = { readonly fail: (s: Stage) => Outcome; readonly cause: string }

const thrown = (code: string) => () => {
  throw Object.assign(new Error(code), { code })
}

const ways: Record<string, Way> = {
  refused: { fail: thrown('ECONNREFUSED'), cause: 'unavailable' },
  '503': {
    fail: () => {
      throw Object.assign(new Error('503'), { status: 503 })
    },
    cause: 'unavailable',
  },
  '429': { fail: (s) => s.say.unavailable({ status: 429 }), cause: 'unavailable' },
  'time-out': {
    fail: () => {
      throw new DOMException('late', 'TimeoutError')
    },
    cause: 'unavailable',
  },
  '401': {
    fail: () => {
      throw Object.assign(new Error('401'), { status: 401 })
    },
    cause: 'misconfigured',
  },
  'index missing': {
    fail: (s) => s.say.misconfigured({ message: 'no such index' }),
    cause: 'misconfigured',
  },
}

function outageOf(name: string, { fail, cause }: Way) {
  return defineCase(`outage: ${name}`, async (env) => {
    const s = await stage(env)
    let away = true
    const sink = env.engine.testing.memorySink({ answer: () => (away ? fail(s) : undefined) })
    const outbox = s.outbox(sink, { subscription: { batch: { count: 50 } } })
    await s.bulk(300, `'doc.changed'`, `'d' || n % 100`)
    for (let round = 0; round < 8; round++) {
      await outbox.runOnce(quiet)
      await s.clock.advance(6_000)
    }
    expect(await s.rows(), `rows written during an outage: ${name}`).toEqual([])
    expect(await s.open(), 'the cursor stays').toBe(300)
    const [held] = await s.db.query('select held_cause, held_says is not null as says from outbox.subscription')
    expect(held).toEqual({ held_cause: cause, says: true })
    // After the first failures only single events are tried.
    expect(sink.calls.slice(-5), 'probes').toEqual([1, 1, 1, 1, 1])
    away = false
    await s.clock.advance(6_000)
    await eventually(async () => {
      await outbox.runOnce(quiet)
      return (await s.open()) === 0
    })
    expect(sink.accepted.length, 'deliveries after the repair').toBe(300)
    const [after] = await s.db.query('select held_cause, held_count from outbox.subscription')
    expect(after).toEqual({ held_cause: null, held_count: 0 })
    await holds(s.db, 'I8')
  })
}

export const outages = Object.entries(ways).map(([name, way]) => outageOf(name, way))

export const outage = outages.find(({ title }) => title === 'outage: refused') as (typeof outages)[0]

/** The right to probe: one wins, a late failure of somebody else does not end it, it lapses. */
export const probeRace = defineCase('outage: the right to probe', async (env) => {
  const s = await stage(env)
  await s.outbox(env.engine.testing.memorySink()).runOnce(quiet)
  const hold = `select outbox.hold('all', 'unavailable', 'away', 0, 5000, $1)`
  const probe = async (who: string) => (await s.db.query(`select outbox.probe('all', $1, 35000) as won`, [who]))[0]?.won
  await s.db.query(hold, [null])
  expect(await probe('a'), 'too early').toBe(false)
  await s.clock.advance(300)
  const both = [await session(s.db, 'a'), await session(s.db, 'b')] as const
  await both[0].begin()
  const first = await both[0].run(`select outbox.probe('all', 'a', 35000) as won`)
  const second = both[1].start(`select outbox.probe('all', 'b', 35000) as won`)
  await second.blocked(both[0])
  await both[0].commit()
  expect([first, await second.promise], 'probes at once').toEqual([[{ won: true }], [{ won: false }]])
  await s.db.query(hold, [null])
  await s.db.query(hold, ['b'])
  await s.clock.advance(30_000)
  expect(await probe('c'), 'a failure of somebody else ended the probe').toBe(false)
  await s.clock.advance(6_000)
  expect(await probe('c'), 'the right lapses').toBe(true)
  await s.db.query(hold, ['c'])
  const [row] = await s.db.query('select held_count, probe_owner from outbox.subscription')
  expect(row).toEqual({ held_count: 2, probe_owner: null })
})

/** Three workers, one probe at a time; lanes without work never close the breaker. */
export const oneProbe = defineCase('outage: one probe at a time over all workers', async (env) => {
  const s = await stage(env)
  let away = true
  let probing = 0
  let most = 0
  let probes = 0
  let total = 0
  const sink = {
    name: 'memory',
    deliver: async (events: readonly OutboxEvent[]) => {
      total += events.length
      const [held] = await s.db.query<{ probing: boolean }>(
        'select probe_owner is not null as probing from outbox.subscription',
      )
      if (away && held?.probing) {
        most = Math.max(most, ++probing)
        probes++
        expect(events.length).toBe(1)
        await s.db.query('select 1')
        probing--
      }
      return events.map(() => (away ? s.say.unavailable() : s.say.delivered()))
    },
  }
  const outbox = s.outbox(sink)
  await s.change('a', 'b', 'c')
  const workers = []
  for (let n = 0; n < 3; n++) workers.push(await outbox.start({ ...quiet, concurrency: 2 }))
  for (let n = 0; n < 6; n++) {
    const before = probes
    await s.clock.advance(6_000)
    await eventually(() => probes > before, { what: 'a probe' })
  }
  const [held] = await s.db.query<{ n: number }>('select held_count as n from outbox.subscription')
  expect(most, 'probes at once').toBe(1)
  expect(Number(held?.n), 'the breaker never closed').toBeGreaterThanOrEqual(6)
  const sentBefore = total
  away = false
  await s.clock.advance(6_000)
  await eventually(async () => (await s.open()) === 0)
  for (const worker of workers) await worker.stop()
  expect(sentBefore - probes, 'sent beside the probes').toBeLessThan(20)
  await holds(s.db, 'I8')
})

export const retryAfter = defineCase('retry-after', async (env) => {
  const s = await stage(env)
  const [a, b] = [(await s.inLane(1, 1))[0], (await s.inLane(9, 1))[0]] as [string, string]
  let afterMs: number | undefined = 20_000
  const sink = env.engine.testing.memorySink({
    answer: (event) => (event.aggregateId === a && afterMs !== undefined ? s.say.unavailable({ afterMs }) : undefined),
  })
  const outbox = s.outbox(sink)
  await s.change(a)
  await outbox.runOnce(quiet)
  await s.change(b)
  await s.clock.advance(19_000)
  await outbox.runOnce(quiet)
  expect(sink.calls.length, 'the destination is held').toBe(1)
  await s.clock.advance(1_500)
  afterMs = 1e12
  await outbox.runOnce(quiet)
  await s.clock.advance(3_590_000)
  await outbox.runOnce(quiet)
  const before = sink.calls.length
  expect(labels(sink), 'an absurd value holds for an hour').not.toContain(`${a}@1`)
  afterMs = undefined
  await s.clock.advance(20_000)
  await eventually(async () => {
    await outbox.runOnce(quiet)
    return (await s.open()) === 0
  })
  expect(sink.calls.length).toBeGreaterThan(before)
  expect(labels(sink).sort()).toEqual([`${a}@1`, `${b}@1`].sort())
  expect(await s.rows()).toEqual([])
})

/** Half of the calls time out, items are throttled one by one, for ten minutes. */
export const brownOut = defineCase('brown-out', async (env) => {
  const s = await stage(env)
  let seed = 12345
  const half = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed % 1_000 < 500
  }
  let away = true
  const sink = env.engine.testing.memorySink({
    answer: () => (away && half() ? s.say.unavailable({ status: 429 }) : undefined),
  })
  const timing = {
    ...sink,
    deliver: async (...args: Parameters<typeof sink.deliver>) => {
      if (away && half()) throw new DOMException('no answer', 'TimeoutError')
      return sink.deliver(...args)
    },
  }
  const outbox = s.outbox(timing, { subscription: { batch: { count: 20 } } })
  await s.bulk(400, `'doc.changed'`, `'d' || n % 100`)
  for (let seconds = 0; seconds < 600; seconds += 6) {
    await outbox.runOnce(quiet)
    await s.clock.advance(6_000)
  }
  away = false
  await eventually(async () => {
    await s.clock.advance(6_000)
    await outbox.runOnce(quiet)
    return (await s.open()) === 0 && (await s.rows()).length === 0
  })
  const dead = await s.db.query(`select 1 from outbox.delivery where state = 'dead'`)
  expect(dead.length, 'dead letters of a brown-out').toBe(0)
  expect(new Set(sink.accepted.map(({ position }) => position)).size).toBe(400)
  await holds(s.db, 'I8')
})

/** One event that always times out while everything else passes spends attempts, and only it. */
export const lonelyTimeout = defineCase('outage: one event is the reason', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink({
    answer: (event) => (event.aggregateId === 'bad' ? s.say.unavailable() : undefined),
  })
  // Whenever the destination is held, it is time for the next probe at once.
  const pool = new WatchedPool(s.db.pool)
  pool.after = (text) => (text.includes('outbox.hold') ? s.clock.advance(6_000) : undefined)
  const outbox = s.outbox(sink, { pool, subscription: { retry: { attemptsMax: 1 } } })
  await s.change('bad')
  // So far the clock runs ahead of all renewals, and who loses a lane forgets what it saw of it.
  const worker = await outbox.start({ ...quiet, leaseMs: 3_600_000 })
  await eventually(
    async () => {
      await s.change('good', 'fine', 'well')
      return (await s.rows()).some((row) => row === 'bad@1 dead 1')
    },
    { timeoutMs: 55_000, everyMs: 20 },
  )
  await eventually(async () => (await s.open()) === 0)
  await worker.stop()
  expect((await s.rows()).length, 'rows of others').toBe(1)
})
