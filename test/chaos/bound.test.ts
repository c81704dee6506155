// The bound on repeats: nothing is allowed without a reason, and each reason allows what the guarantees say.

import { describe, expect, it } from 'vitest'
import { duplicateBounds } from './bound.mjs'

type Entry = Record<string, unknown> & { k: string }

const run: Entry = { k: 'run', leaseMs: 3_000 }
const webhook: Entry = { k: 'sub', name: 'webhook', order: 'aggregate', coalesce: 'none', loops: 2, count: 10 }
const broker: Entry = { k: 'sub', name: 'broker', order: 'none', coalesce: 'none', loops: 2, count: 10 }
const index: Entry = { ...webhook, name: 'index', coalesce: 'latest', versions: true }

const accepted = (by: string, count: number, cid = 'c1'): Entry[] =>
  Array.from({ length: count }, (_, n) => ({ k: 'recv', sub: 'webhook', key: `k${n}`, by, cid }))
const taken = (from: string, at: number, more = {}): Entry => ({
  k: 'taken',
  sub: 'webhook',
  lane: 1,
  from,
  owners: ['worker-2.1'],
  at,
  ...more,
})
const of = (...entries: Entry[]) => duplicateBounds([run, webhook, broker, ...entries]).webhook

describe('the bound on repeats', () => {
  it('without a reason it is 0', () => {
    const bounds = duplicateBounds([run, webhook, broker, ...accepted('worker-1.1', 100)])
    expect([bounds.webhook?.all, bounds.broker?.all]).toEqual([0, 0])
  })

  it('a kill repeats two batches of each loop, and no more than the worker ever sent', () => {
    const down = { k: 'down', who: 'worker-1.1', polite: false }
    expect(of(...accepted('worker-1.1', 100), down)).toMatchObject({ kills: 40, all: 40 })
    expect(of(...accepted('worker-1.1', 7), down)).toMatchObject({ kills: 7, all: 7 })
    expect(of(...accepted('worker-1.1', 100), { ...down, polite: true })).toMatchObject({ all: 0 })
  })

  it('leases that ran out together are one lapse, and one that was dead is counted as killed', () => {
    const sent = accepted('worker-1.1', 100)
    expect(of(...sent, taken('worker-1.1', 5_000), taken('worker-1.1', 6_000))).toMatchObject({ lapses: 40 })
    expect(of(...sent, taken('worker-1.1', 5_000), taken('worker-1.1', 9_000))).toMatchObject({ lapses: 80 })
    const down = { k: 'down', t: 4_000, who: 'worker-1.1', polite: false }
    expect(of(...sent, down, taken('worker-1.1', 5_000))).toMatchObject({ kills: 40, lapses: 0 })
  })

  it('a settle without an answer repeats two batches of one loop, beside a replay three', () => {
    const lost = { k: 'some', name: 'error', during: 'settle', subscription: 'webhook' }
    expect(of(lost)).toMatchObject({ settles: 20 })
    expect(of(lost, { k: 'replay', sub: 'webhook', id: '1', from: 1, head: 5 })).toMatchObject({ settles: 30 })
  })

  it('a call without an answer repeats what was accepted in it', () => {
    const failed = { k: 'callfail', sub: 'webhook', who: 'worker-1.1', cid: 'c2' }
    const sent = [...accepted('worker-1.1', 5, 'c1'), ...accepted('worker-1.1', 3, 'c2')]
    expect(of(...sent, failed)).toMatchObject({ answers: 3, all: 3 })
  })

  it('after a take-over every aggregate of the lane once more, and again for each try that failed', () => {
    const members = [
      { k: 'members', lane: 1, type: 'row', n: 4 },
      { k: 'members', lane: 2, type: 'row', n: 9 },
    ]
    const lane = taken('worker-0.1', 5_000, { until: 9_000 })
    expect(of(...members, lane)).toMatchObject({ again: 4 })
    const failed = (t: number, who: string) => ({ k: 'some', name: 'error', t, subscription: 'webhook', who })
    const errors = [failed(8_000, 'worker-2.1'), failed(8_000, 'worker-3.1'), failed(10_000, 'worker-2.1')]
    expect(of(...members, lane, ...errors)).toMatchObject({ again: 8 })
    const partly = { k: 'trouble', name: 'item', t: 8_000, sub: 'webhook', who: 'worker-2.1', cid: 'c1' }
    expect(of(...members, lane, partly, ...accepted('worker-2.1', 3))).toMatchObject({ again: 7 })
    const many = { k: 'members', lane: 1, type: 'tile', n: 20 }
    expect(of(...members, many, lane, partly)).toMatchObject({ again: 48 })
    const versions = duplicateBounds([run, index, ...members, { ...lane, sub: 'index' }])
    expect(versions.index?.again).toBe(0)
  })

  it('a replay repeats its range, up to where the live cursor was when it began', () => {
    const asked = { k: 'replay', sub: 'webhook', id: '7', from: 11, head: 20 }
    expect(of(asked)).toMatchObject({ replays: 10 })
    expect(of(asked, { k: 'replayed', id: '7', to: 25 })).toMatchObject({ replays: 15 })
  })
})
