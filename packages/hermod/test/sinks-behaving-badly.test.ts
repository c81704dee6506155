// Whatever a user's own sink does, the worker lives, nothing counts as delivered that was not, and
// the reason is on record.

import { describe, expect, it } from 'vitest'
import { useDatabase } from '../../../test/support/database.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { createOutbox } from '../src/index.ts'
import type { SinkFunction } from '../src/sinks/sink.ts'
import { delivered } from '../src/sinks/sink.ts'

const db = useDatabase()
let count = 0

/** Three events to a sink, once; what became of them. */
async function served(sink: unknown, callMs = 200): Promise<{ rows: string[]; held: string | null }> {
  const name = `bad-${++count}`
  const [head] = await db.query<{ pos: string }>('select coalesce(max(pos), 0)::text as pos from outbox.log')
  const from = { position: head?.pos ?? '0' }
  const outbox = createOutbox({ pool: db.pool, random: () => 0 })
  outbox.subscribe(name, {
    revision: 1,
    types: ['*'],
    from,
    callMs,
    lanes: 1,
    sink: sink as SinkFunction,
  })
  await outbox.transaction((tx) =>
    outbox.emit(
      tx,
      ['a', 'b', 'c'].map((id) => ({
        type: 'doc.changed',
        aggregate: ['doc', `${name}${id}`],
        payload: {},
      })),
    ),
  )
  await outbox.runOnce({ upkeep: false, leaseMs: 2_000, deadlineMs: 5_000 })
  const rows = await db.query<{ says: string }>(
    `select format('%s %s %s %s', right(aggregate_id, 1), state, attempts, code) as says from outbox.delivery where subscription = $1 order by pos`,
    [name],
  )
  const [held] = await db.query<{ cause: string | null }>(
    'select held_cause as cause from outbox.subscription where name = $1',
    [name],
  )
  return { rows: rows.map(({ says }) => says), held: held?.cause ?? null }
}

const all = (says: string) => ['a', 'b', 'c'].map((id) => `${id} retrying 1 ${says}`)
const broken = { rows: all('HMD_SINK_BROKEN'), held: null }

describe('a sink that breaks its contract is retried with HMD_SINK_BROKEN', () => {
  it.each<[string, unknown]>([
    [
      'throws a string',
      () => {
        throw 'no'
      },
    ],
    [
      'throws undefined',
      () => {
        throw undefined
      },
    ],
    ['rejects with a number', () => Promise.reject(7)],
    ['never settles', () => new Promise(() => {})],
    ['returns too few outcomes', () => [delivered()]],
    ['returns too many outcomes', (events: unknown[]) => [...events, 1].map(() => delivered())],
    ['returns no list', () => ({ ok: true })],
    ['returns null', () => null],
    ['returns outcomes nobody knows', (events: unknown[]) => events.map(() => ({ outcome: 'fine' }))],
    ['returns holes', (events: unknown[]) => new Array(events.length)],
    ['returns unknown without a ledger', (events: unknown[]) => events.map(() => ({ outcome: 'unknown' }))],
  ])('%s', async (_, sink) => {
    expect(await served(sink)).toEqual(broken)
  })
})

describe('a sink that fails', () => {
  it('throws an error for everything: isolated, then given up together', async () => {
    const { rows, held } = await served(() => {
      throw new TypeError('oops')
    })
    expect(rows).toEqual(all('TypeError'))
    expect(held).toBeNull()
  })

  it('throws synchronously for one event: the others arrive', async () => {
    const seen: string[] = []
    const { rows } = await served((events: { aggregateId: string }[]) => {
      if (events.some(({ aggregateId }) => aggregateId.endsWith('b'))) throw new RangeError('b')
      seen.push(...events.map(({ aggregateId }) => aggregateId.slice(-1)))
    })
    expect(rows).toEqual(['b retrying 1 RangeError'])
    expect(seen.sort()).toEqual(['a', 'c'])
  })

  it('hears its deadline and throws: the destination is held, nothing is spent', async () => {
    const late = (_: unknown, { signal }: { signal: AbortSignal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    expect(await served(late, 50)).toEqual({ rows: [], held: 'unavailable' })
  })

  it('answers with HTML, foreign JSON or a cut body: nothing counts as delivered', async () => {
    const parsed = () => JSON.parse('<html>') as never
    const { rows } = await served(parsed)
    expect(rows).toEqual(all('SyntaxError'))
  })

  it('has a validate() that throws: rejected, the others go on', async () => {
    const sink = {
      name: 'odd',
      validate: ({ aggregateId }: { aggregateId: string }) => {
        if (aggregateId.endsWith('a')) throw new Error('cannot look')
        return undefined
      },
      deliver: async () => {},
    }
    expect((await served(sink)).rows).toEqual(['a dead 1 HMD_EVENT_INVALID'])
  })

  it('changes the list it was given: the others are not confused', async () => {
    const sink = async (events: unknown[]) => {
      const outcomes = events.map(() => delivered())
      events.length = 0
      return outcomes
    }
    expect(await served(sink)).toEqual({ rows: [], held: null })
  })
})

describe('load()', () => {
  const loading = async (load: unknown) => {
    const name = `load-${++count}`
    const [head] = await db.query<{ pos: string }>('select coalesce(max(pos), 0)::text as pos from outbox.log')
    const outbox = createOutbox({ pool: db.pool })
    const got: unknown[] = []
    outbox.subscribe(name, {
      revision: 1,
      types: ['*'],
      from: { position: head?.pos ?? '0' },
      callMs: 100,
      lanes: 1,
      load: load as never,
      sink: async (events) => void got.push(...events.map(({ payload, absent }) => ({ payload, absent }))),
    })
    await outbox.transaction((tx) =>
      outbox.emit(tx, { type: 'doc.changed', aggregate: ['doc', name], payload: { stale: true } }),
    )
    await outbox.runOnce({ upkeep: false, leaseMs: 2_000, deadlineMs: 5_000 })
    const [row] = await db.query<{ cause: string; says: string }>(
      'select held_cause as cause, held_says as says from outbox.subscription where name = $1',
      [name],
    )
    return { got, ...row }
  }

  it('gives the current row, and absent where there is none', async () => {
    expect(
      (await loading(async ([event]: { aggregateId: string }[]) => new Map([[event?.aggregateId, { fresh: 1 }]]))).got,
    ).toEqual([{ payload: { fresh: 1 }, absent: false }])
    expect((await loading(async () => new Map())).got).toEqual([{ payload: null, absent: true }])
  })

  it('is asked for references alone when told so, and order stays', async () => {
    const [head] = await db.query<{ pos: string }>('select max(pos)::text as pos from outbox.log')
    const outbox = createOutbox({ pool: db.pool })
    const asked: string[] = []
    const got: unknown[] = []
    outbox.subscribe('references', {
      revision: 1,
      types: ['*'],
      from: { position: head?.pos ?? '0' },
      lanes: 1,
      load: async (events) => {
        asked.push(...events.map(({ aggregateId }) => aggregateId))
        return new Map([['large', { loaded: true }]])
      },
      loads: 'references',
      sink: async (events) =>
        void got.push(...events.map(({ aggregateId, payload, absent }) => [aggregateId, payload, absent])),
    })
    await outbox.transaction((tx) =>
      outbox.emit(tx, [
        { type: 'doc.changed', aggregate: ['doc', 'large'] },
        { type: 'doc.changed', aggregate: ['doc', 'small'], payload: { own: true } },
        { type: 'doc.changed', aggregate: ['doc', 'gone'] },
      ]),
    )
    await outbox.runOnce({ upkeep: false, deadlineMs: 5_000 })
    expect(asked).toEqual(['large', 'gone'])
    expect(got).toEqual([
      ['large', { loaded: true }, false],
      ['small', { own: true }, false],
      ['gone', null, true],
    ])
    const pointless = { revision: 1, types: ['*'], loads: 'references', sink: () => {} } as const
    expect(() => outbox.subscribe('pointless', pointless)).toThrow('loads must be left out')
  })

  it.each<[string, unknown, RegExp]>([
    ['throws', () => Promise.reject(new Error('no table')), /no table/],
    ['never settles', () => new Promise(() => {}), /no rows within/],
    ['returns nothing', async () => undefined, /no rows/],
  ])('that %s holds the subscription, spends nothing, says why', async (_, load, says) => {
    const found = await loading(load)
    expect(found.got).toEqual([])
    expect(found.cause).toBe('unavailable')
    expect(found.says).toMatch(says)
  })
})

it('a worker survives all of it and goes on', async () => {
  const outbox = createOutbox({ pool: db.pool })
  let bad = true
  let arrived = 0
  outbox.subscribe('survivor', {
    revision: 1,
    types: ['*'],
    retry: { baseMs: 1, attemptsMax: 100 },
    sink: () => {
      if (bad) throw 'no'
      arrived++
    },
  })
  const worker = await outbox.start({ upkeep: false, pollMs: 10 })
  await outbox.transaction((tx) =>
    outbox.emit(tx, { type: 'doc.changed', aggregate: ['doc', 'survivor'], payload: {} }),
  )
  await eventually(
    async () =>
      (await db.query(`select 1 from outbox.delivery where subscription = 'survivor' and attempts > 1`)).length > 0,
  )
  bad = false
  await eventually(() => arrived === 1)
  await worker.stop()
})
