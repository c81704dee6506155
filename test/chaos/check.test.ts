// The judge is judged: a hand-written history for every violation and for every legal oddity.

import { describe, expect, it } from 'vitest'
import { checkHistory, violationsOf } from './check.mjs'
import { type Entry, subs } from './histories.ts'

const table: Entry = {
  k: 'sub',
  name: 'catalogue',
  order: 'aggregate',
  coalesce: 'latest',
  versions: true,
  table: true,
}

/** One committed transaction per version of `row/1`: keys `t1-0`, `t2-0`, … */
function written(versions: number): Entry[] {
  return Array.from({ length: versions }, (_, index) => index + 1).flatMap((v) => [
    { k: 'try', t: v * 10, tx: `t${v}`, ev: [[`t${v}-0`, 'row/1', v]] },
    { k: 'ack', t: v * 10 + 1, tx: `t${v}` },
    { k: 'done', tx: `t${v}` },
  ])
}

const recv = (sub: string, ...versions: number[]): Entry[] =>
  versions.map((v) => ({ k: 'recv', t: 1_000, sub, key: `t${v}-0`, v, pos: String(v), call: 1 }))

const poison = (sub: string, v: number): Entry => ({ k: 'poison', sub, key: `t${v}-0` })

const version = (v: number): Entry => ({ k: 'version', agg: 'row/1', v })

/** What is found in a history of one subscription that saw these versions. */
function judged(sub: string, count: number, seen: number[], more: Entry[] = []) {
  const definition = subs.filter(({ name }) => name === sub)
  const receipts = sub === 'mail' ? ledger(count, seen) : []
  return checkHistory([...definition, ...written(count), ...recv(sub, ...seen), version(count), ...receipts, ...more])
}

/** Every effect has a row; where `more` says otherwise, the later line counts. */
function ledger(count: number, seen: number[]): Entry[] {
  const sent = new Set(seen.filter((v) => v <= count))
  return [...sent].map((v) => ({ k: 'row', sub: 'mail', key: `t${v}-0`, state: 'delivered' }))
}

const none = {
  lost: 0,
  ghosts: 0,
  orderViolations: 0,
  stale: 0,
  sentTwice: 0,
  unrecorded: 0,
  wronglyDead: 0,
  unfinished: 0,
  duplicates: 0,
}
const counts = (found: ReturnType<typeof checkHistory>) =>
  Object.fromEntries(Object.keys(none).map((name) => [name, found[name as keyof typeof none]]))

describe('legal', () => {
  it('everything once, in order', () => {
    expect(counts(judged('webhook', 3, [1, 2, 3]))).toEqual(none)
  })

  it('a redelivery from an earlier point: 1, 2, 3, 2, 3, 4', () => {
    const found = counts(judged('webhook', 4, [1, 2, 3, 2, 3, 4]))
    expect(found).toEqual({ ...none, duplicates: 2 })
  })

  it('a jump over a dead or discarded event', () => {
    for (const state of ['dead', 'discarded']) {
      const row = { k: 'row', sub: 'webhook', key: 't2-0', state }
      expect(counts(judged('webhook', 3, [1, 3], [row, poison('webhook', 2)]))).toEqual(none)
    }
  })

  it('an unknown event at the end is not lost', () => {
    const row = { k: 'row', sub: 'webhook', key: 't3-0', state: 'unknown' }
    expect(counts(judged('webhook', 3, [1, 2], [row]))).toEqual(none)
  })

  it('stale where the destination has versions: an old write that comes last is refused there', () => {
    expect(counts(judged('index', 3, [3, 2]))).toEqual(none)
    expect(counts(judged('index', 3, [1, 3, 2, 1]))).toEqual({ ...none, duplicates: 1 })
  })

  it('a table that ends with the newest state, however it came there', () => {
    const entries = [table, ...written(3), version(3), { k: 'state', sub: 'catalogue', agg: 'row/1', v: 3 }]
    expect(counts(checkHistory(entries))).toEqual(none)
  })

  it('coalescing: what a dead letter superseded is given up with it', () => {
    const dead = { k: 'row', sub: 'search', key: 't3-0', state: 'dead' }
    expect(counts(judged('search', 3, [1], [dead, poison('search', 3)]))).toEqual(none)
  })

  it('an effect in doubt: accepted or not, its row says unknown', () => {
    const row = { k: 'row', sub: 'mail', key: 't2-0', state: 'unknown' }
    expect(counts(judged('mail', 3, [1, 2, 3], [row]))).toEqual(none)
    expect(counts(judged('mail', 3, [1, 3], [row]))).toEqual(none)
  })

  it('effects in any order: a mail that is in doubt holds nobody back', () => {
    expect(counts(judged('mail', 3, [3, 1, 2]))).toEqual(none)
  })

  it('coalescing: only the newest', () => {
    expect(counts(judged('search', 5, [5]))).toEqual(none)
    expect(counts(judged('search', 5, [2, 4, 5]))).toEqual(none)
  })

  it('coalescing: a step back, when the newest follows', () => {
    const found = counts(judged('search', 5, [4, 3, 5]))
    expect(found).toEqual(none)
  })

  it('any order where none is promised', () => {
    expect(counts(judged('broker', 3, [3, 1, 2]))).toEqual(none)
  })

  it('a commit without an answer that PostgreSQL has', () => {
    const entries = written(2).filter(({ k, tx }) => !(k === 'ack' && tx === 't2'))
    const found = checkHistory([...subs.slice(0, 1), ...entries, ...recv('webhook', 1, 2)])
    expect(counts(found)).toEqual(none)
    expect(found).toMatchObject({ emitted: 2, acked: 1 })
  })

  it('a commit without an answer that PostgreSQL does not have', () => {
    const entries = written(2).filter(({ k, tx }) => !(k !== 'try' && tx === 't2'))
    const found = checkHistory([...subs.slice(0, 1), ...entries, ...recv('webhook', 1)])
    expect(counts(found)).toEqual(none)
  })

  it('an asynchronous commit that a crash undid', () => {
    const undone = { k: 'try', t: 1, tx: 'a', ev: [['a-0', 'row/2', 1]], async: true }
    const found = checkHistory([...subs.slice(0, 1), undone, { k: 'ack', t: 2, tx: 'a' }])
    expect(counts(found)).toEqual(none)
  })

  it('events of an aggregate that a subscription does not listen to', () => {
    const tile = { k: 'try', t: 1, tx: 'a', ev: [['a-0', 'tile/2', 1]] }
    const ends = [
      { k: 'ack', t: 2, tx: 'a' },
      { k: 'done', tx: 'a' },
    ]
    expect(counts(checkHistory([...subs.slice(2, 3), tile, ...ends]))).toEqual(none)
  })
})

describe('violations', () => {
  it('lost: never accepted', () => {
    expect(counts(judged('webhook', 3, [1, 2]))).toEqual({ ...none, lost: 1, stale: 1 })
    expect(counts(judged('broker', 3, [1, 3]))).toEqual({ ...none, lost: 1 })
  })

  it('lost: the newest state of an aggregate', () => {
    expect(counts(judged('search', 3, [1, 2]))).toMatchObject({ lost: 1, stale: 1 })
  })

  it('lost: answered, but PostgreSQL does not have it', () => {
    const entries = written(1).filter(({ k }) => k !== 'done')
    expect(counts(checkHistory([...subs.slice(0, 1), ...entries]))).toEqual({ ...none, lost: 1 })
  })

  it('ghost: rolled back', () => {
    const entries = written(1).filter(({ k }) => k === 'try')
    const failed = { k: 'fail', t: 9, tx: 't1', why: 'rollback' }
    const found = checkHistory([...subs.slice(0, 1), ...entries, failed, ...recv('webhook', 1)])
    expect(counts(found)).toEqual({ ...none, ghosts: 1 })
    expect(found.emitted).toBe(0)
  })

  it('ghost: never written, another version, not listened to', () => {
    const unknown = { k: 'recv', t: 1, sub: 'webhook', key: 't1-undone', v: 2 }
    expect(counts(judged('webhook', 1, [1], [unknown]))).toEqual({ ...none, ghosts: 1 })
    const other = { k: 'recv', t: 1, sub: 'webhook', key: 't1-0', v: 2 }
    expect(counts(judged('webhook', 1, [1], [other]))).toEqual({ ...none, ghosts: 1 })
    const nobody = { k: 'recv', t: 1, sub: 'nobody', key: 't1-0', v: 1 }
    expect(counts(judged('webhook', 1, [1], [nobody]))).toEqual({ ...none, ghosts: 1 })
  })

  it('order: a jump forward', () => {
    expect(counts(judged('webhook', 3, [1, 3, 2, 3]))).toEqual({ ...none, orderViolations: 1, duplicates: 1 })
    expect(counts(judged('queue', 3, [2, 1, 2, 3]))).toEqual({ ...none, orderViolations: 1, duplicates: 1 })
  })

  it('stale: the last write wins, and it was an old one', () => {
    expect(counts(judged('search', 3, [3, 2]))).toEqual({ ...none, stale: 1 })
    expect(counts(judged('webhook', 3, [1, 2, 3, 2]))).toEqual({ ...none, duplicates: 1, stale: 1 })
    expect(counts(judged('queue', 3, [1, 2, 3, 1]))).toEqual({ ...none, duplicates: 1, stale: 1 })
  })

  it('stale: destinations with versions are told apart from the others', () => {
    const found = checkHistory([
      ...subs.slice(1, 2),
      ...subs.slice(3, 4),
      ...written(3),
      version(3),
      ...recv('search', 3, 1),
      ...recv('index', 2),
    ])
    expect(found.staleBy).toEqual({ versions: { index: 1 }, lastWrite: { search: 1 } })
  })

  it('stale: a dead letter excuses itself, not what came before it', () => {
    const dead = { k: 'row', sub: 'webhook', key: 't3-0', state: 'dead' }
    expect(counts(judged('webhook', 3, [1, 2], [dead, poison('webhook', 3)]))).toEqual(none)
    expect(counts(judged('webhook', 3, [1, 2, 1], [dead, poison('webhook', 3)]))).toEqual({
      ...none,
      duplicates: 1,
      stale: 1,
    })
  })

  it('stale: a table that ends with an older state, or without the row', () => {
    const state = { k: 'state', sub: 'catalogue', agg: 'row/1', v: 2 }
    expect(counts(checkHistory([table, ...written(3), version(3), state]))).toEqual({ ...none, stale: 1 })
    expect(counts(checkHistory([table, ...written(3), version(3)]))).toEqual({ ...none, stale: 1 })
  })

  it('ledger: an effect twice, whatever the bound on duplicates', () => {
    const found = judged('mail', 3, [1, 2, 3, 2])
    expect(counts(found)).toEqual({ ...none, sentTwice: 1 })
    expect(violationsOf(found, { mail: { all: 1_000 } })).toBe(1)
  })

  it('ledger: an effect without a row, or with one that does not say so', () => {
    const row = { k: 'row', sub: 'mail', key: 't2-0', state: 'dead' }
    expect(counts(judged('mail', 3, [1, 2, 3], [row, poison('mail', 2)]))).toEqual({ ...none, unrecorded: 1 })
    const found = checkHistory([...subs.slice(4, 5), ...written(1), ...recv('mail', 1), version(1)])
    expect(counts(found)).toEqual({ ...none, unrecorded: 1 })
  })

  it('ledger: a row that says delivered is no effect', () => {
    const row = { k: 'row', sub: 'mail', key: 't3-0', state: 'delivered' }
    expect(counts(judged('mail', 3, [1, 2], [row]))).toEqual({ ...none, lost: 1 })
  })

  it('dead, although no destination rejected it', () => {
    const dead = { k: 'row', sub: 'webhook', key: 't3-0', state: 'dead' }
    expect(counts(judged('webhook', 3, [1, 2], [dead]))).toEqual({ ...none, wronglyDead: 1 })
  })

  it('unfinished: above the cursor, retrying, or behind such an event', () => {
    const above = { k: 'open', sub: 'webhook', key: 't3-0' }
    expect(counts(judged('webhook', 3, [1, 2], [above]))).toEqual({ ...none, unfinished: 1 })
    const retrying = { k: 'row', sub: 'webhook', key: 't2-0', state: 'retrying' }
    const found = judged('webhook', 3, [1], [retrying])
    expect(counts(found)).toEqual({ ...none, unfinished: 2 })
    expect(violationsOf(found)).toBe(2)
    expect(counts(judged('webhook', 4, [1, 2, 4], [above]))).toMatchObject({ orderViolations: 1 })
    const newest = { k: 'open', sub: 'search', key: 't3-0' }
    expect(counts(judged('search', 3, [1], [newest]))).toEqual({ ...none, unfinished: 2 })
  })

  it('duplicates beyond the bound of their subscription', () => {
    const found = judged('webhook', 2, [1, 2, 1, 2])
    expect(violationsOf(found)).toBe(2)
    expect(violationsOf(found, { webhook: { all: 1 }, search: { all: 100 } })).toBe(1)
    expect(violationsOf(found, { webhook: { all: 2 } })).toBe(0)
  })

  it('each is told with the history of its aggregate', () => {
    const { violations } = judged('webhook', 3, [1, 3, 2, 3])
    expect(violations).toHaveLength(1)
    expect(violations[0]).toContain('webhook row/1: t3-0: v 3 accepted after 1')
    expect(violations[0]).toContain('v1@1')
  })
})
