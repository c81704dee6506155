// The numbers an operator looks at first: they agree with the view, and are never a false zero.

import { describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { duration } from '../../src/desk/health.ts'
import { rejected, retry } from '../../src/sinks/sink.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { BY, docs, type Stage, stage } from './stage.ts'

const db = useDatabase()

const of = async (s: Stage, name: string) => (await s.outbox.stats()).subscriptions.find((one) => one.name === name)

describe('stats', () => {
  it('counts what the view says, state by state', async () => {
    const moods = [() => undefined, () => retry(), () => rejected({ code: 'x' })]
    const answer = ({ aggregateId }: { aggregateId: string }) => moods[Number(aggregateId) % 3]?.()
    const s = await stage(db, {
      plain: { answer, types: ['document.*'] },
      ledger: { answer, ledger: true },
      one: { answer, lanes: 1, onDead: 'hold' },
    })
    const some = (n: number) => docs(...Array.from({ length: n }, (_, i) => String(i % 7)))
    await s.emit(...some(40))
    await s.work('plain', 'ledger', 'one')
    await s.outbox.discard('plain', { state: 'dead' }, { ...BY, limit: 1 })
    await s.outbox.retry('plain', { state: 'dead' }, { ...BY, limit: 3 })
    await s.emit(...some(9), { type: 'memo.sent', aggregate: ['memo', 1] })
    await s.number()
    await s.emit(...some(3), {
      type: 'document.updated',
      aggregate: ['document', 'x'],
      notBefore: new Date(Date.now() + 1e6),
    })
    const filed = async () => {
      await s.number()
      await s.emit(...some(2))
    }
    await filed()
    const stats = await s.outbox.stats()
    for (const name of ['plain', 'ledger', 'one']) {
      const rows = await db.query<{ state: string; n: number }>(
        'select state, count(*)::int as n from outbox.status where subscription = $1 group by 1',
        [name],
      )
      const words = Object.fromEntries(rows.map(({ state, n }) => [state, n]))
      const one = stats.subscriptions.find((each) => each.name === name)
      const { pending, processing, scheduled, retrying, blocked, dead, unknown, discarded, delivered } = one ?? {}
      const zero = {
        pending: 0,
        processing: 0,
        scheduled: 0,
        retrying: 0,
        blocked: 0,
        dead: 0,
        unknown: 0,
        discarded: 0,
        delivered: 0,
      }
      expect({
        name,
        pending,
        processing,
        scheduled,
        retrying,
        blocked,
        dead,
        unknown,
        discarded,
        delivered,
      }).toEqual({ name, ...zero, ...words })
      expect(one?.reasons).toEqual({})
      expect(one?.rate).toBeGreaterThan(0)
    }
    expect(stats.unnumbered).toBe(2)
    expect(stats.head).toBeGreaterThan(50n)
  })

  it('a count that cannot be had in time is null and says why', async () => {
    const s = await stage(db, { late: {} })
    const client = await db.pool.connect()
    await client.query('begin')
    await client.query('lock table outbox.delivery in access exclusive mode')
    try {
      const stats = await s.outbox.stats({ timeoutMs: 100 })
      const late = stats.subscriptions.find(({ name }) => name === 'late')
      expect(late).toMatchObject({
        dead: null,
        retrying: null,
        blocked: null,
        delivered: 0,
        rate: 0,
      })
      expect(late?.reasons).toMatchObject({ rows: 'not counted within 100 ms' })
    } finally {
      await client.query('rollback')
      client.release()
    }
  })

  it('health: one word, since when, and why', async () => {
    const clock = await fakeClock(db.pool as never)
    const s = await stage(db, { healthy: {} })
    expect((await of(s, 'healthy'))?.health).toEqual({ word: 'ok', since: null, why: 'keeping up' })
    await s.emit(...docs('h'))
    await s.number()
    await clock.advance(200_000)
    const behind = await of(s, 'healthy')
    expect(behind?.health).toMatchObject({ word: 'behind' })
    expect(behind?.health.why).toMatch(/^no worker serves it; the oldest waits 3 min 2\d s$/)
    expect(behind?.oldestPendingAgeMs).toBeGreaterThanOrEqual(199_000)
    await db.query(`select outbox.hold('healthy', 'misconfigured', 'index not found', 1000, 5000, 'w')`)
    expect(await of(s, 'healthy')).toMatchObject({
      health: { word: 'misconfigured', why: 'index not found' },
      breaker: { state: 'open', cause: 'misconfigured', failures: 1 },
    })
    await s.outbox.mode('healthy', 'dry-run', BY)
    expect((await of(s, 'healthy'))?.health).toMatchObject({
      word: 'dry-run',
      why: 'dry-run by ada: because',
    })
    await clock.restore()
  })

  it('durations read well', () => {
    const read = [850, 12_400, 200_000, 3_600_000, 7_500_000, 273_600_000].map(duration)
    expect(read).toEqual(['850 ms', '12.4 s', '3 min 20 s', '1 h', '2 h 5 min', '3 d 4 h'])
  })
})
