// The judge is judged by fast-check: whatever is deleted, swapped or forged in a good history turns it red.

import fc from 'fast-check'
import { describe, it } from 'vitest'
import { checkHistory, violationsOf } from './check.mjs'
import { type Entry, subs } from './histories.ts'

type Recv = { sub: string; key: string; v: number; pos: number }

describe('any good history', () => {
  /** Several aggregates, some transactions rolled back; each subscription got everything once. */
  const good = fc
    .array(fc.record({ agg: fc.nat(3), rolledBack: fc.boolean() }), { minLength: 2, maxLength: 30 })
    .map(makeGood)

  it('is green', () => {
    fc.assert(fc.property(good, (history) => isGreen(history)))
  })

  it('turns red when an acceptance that matters is deleted', () => {
    fc.assert(
      fc.property(good, fc.nat(), (history, at) => {
        const chosen = choose(history.filter(matters(history)), at)
        return chosen === undefined || !isGreen(history.filter((entry) => entry !== chosen))
      }),
    )
  })

  it('turns red when an old state is the last word where the last write wins', () => {
    fc.assert(
      fc.property(good, fc.nat(), fc.constantFrom('webhook', 'search', 'queue'), (history, at, name) => {
        const newest = new Map(history.filter(({ k }) => k === 'version').map(({ agg, v }) => [agg, v]))
        const old = history.filter((entry) => {
          return entry.k === 'recv' && entry.sub === name && newest.get(aggregateOf(history, entry)) !== entry.v
        })
        const chosen = choose(old, at)
        return chosen === undefined || !isGreen([...history, chosen])
      }),
    )
  })

  it('stays green when the destination has versions', () => {
    fc.assert(
      fc.property(good, fc.nat(), (history, at) => {
        const all = history.filter(({ k, sub }) => k === 'recv' && sub === 'index')
        const chosen = choose(all, at)
        return chosen === undefined || checkHistory([...history, chosen]).stale === 0
      }),
    )
  })

  it('turns red when an effect is repeated, or its row is gone', () => {
    fc.assert(
      fc.property(good, fc.nat(), fc.boolean(), (history, at, repeat) => {
        const chosen = choose(
          history.filter(({ k, sub }) => k === 'recv' && sub === 'mail'),
          at,
        )
        if (chosen === undefined) return true
        const row = (entry: Entry) => entry.k === 'row' && entry.key === chosen.key
        return (
          violationsOf(checkHistory(repeat ? [...history, chosen] : history.filter((e) => !row(e))), {
            mail: { all: 1_000 },
          }) > 0
        )
      }),
    )
  })

  it('turns red when two acceptances of an ordered aggregate are swapped', () => {
    fc.assert(
      fc.property(good, fc.nat(), fc.nat(), (history, first, second) => {
        const ordered = history.filter(({ k, sub }) => k === 'recv' && (sub === 'webhook' || sub === 'queue'))
        const one = choose(ordered, first)
        const other = choose(ordered, second)
        if (one === undefined || other === undefined || one === other) return true
        if (one.sub !== other.sub || aggregateOf(history, one) !== aggregateOf(history, other)) return true
        return !isGreen(history.map((entry) => swapped(entry, one, other)))
      }),
    )
  })

  it('turns red when an acceptance is forged', () => {
    const forgeries = [
      (given: Entry) => ({ ...given, key: 'nobody-0' }),
      (given: Entry) => ({ ...given, v: (given.v as number) + 1 }),
      (given: Entry) => ({ ...given, sub: 'nobody' }),
    ]
    fc.assert(
      fc.property(good, fc.nat(), fc.constantFrom(...forgeries), (history, at, forge) => {
        const chosen = choose(
          history.filter(({ k }) => k === 'recv'),
          at,
        )
        return chosen === undefined || !isGreen([...history, forge(chosen)])
      }),
    )
  })

  it('turns red when a rolled back event is accepted', () => {
    fc.assert(
      fc.property(good, fc.nat(), (history, at) => {
        const failed = new Set(history.filter(({ k }) => k === 'fail').map(({ tx }) => tx))
        const tried = history.filter(({ k, tx }) => k === 'try' && failed.has(tx))
        const [key, , v] = (choose(tried, at)?.ev as [string, string, number][] | undefined)?.[0] ?? []
        if (key === undefined) return true
        return !isGreen([...history, { k: 'recv', t: 1, sub: 'webhook', key, v }])
      }),
    )
  })
})

function makeGood(plans: { agg: number; rolledBack: boolean }[]): Entry[] {
  const versions = new Map<string, number>()
  const history = [...subs]
  for (const [index, { agg, rolledBack }] of plans.entries()) {
    const id = `row/${agg}`
    const v = (versions.get(id) ?? 0) + 1
    const tx = `t${index}`
    const key = `${tx}-0`
    history.push({ k: 'try', t: index, tx, ev: [[key, id, v]] })
    if (rolledBack) {
      history.push({ k: 'fail', t: index, tx, why: 'rollback' })
      continue
    }
    versions.set(id, v)
    history.push({ k: 'ack', t: index, tx }, { k: 'done', tx })
    for (const { name } of subs) history.push({ k: 'recv', t: index + 1, sub: name, key, v, pos: index })
    history.push({ k: 'row', sub: 'mail', key, state: 'delivered' })
  }
  for (const [agg, v] of versions) history.push({ k: 'version', agg, v })
  return history
}

function isGreen(history: Entry[]): boolean {
  return violationsOf(checkHistory(history)) === 0
}

/** With coalescing only the newest of an aggregate must be there. */
function matters(history: Entry[]) {
  const newest = new Map(history.filter(({ k }) => k === 'version').map(({ agg, v }) => [agg, v]))
  return (entry: Entry) =>
    entry.k === 'recv' &&
    (!['search', 'index'].includes(entry.sub as string) || newest.get(aggregateOf(history, entry)) === entry.v)
}

function aggregateOf(history: Entry[], { key }: Entry): string | undefined {
  const all = history.flatMap(({ ev }) => (ev ?? []) as [string, string, number][])
  return all.find(([other]) => other === key)?.[1]
}

function choose(list: Entry[], at: number): Entry | undefined {
  return list.length === 0 ? undefined : list[at % list.length]
}

/** What was accepted changes places; the order of the lines stays. */
function swapped(entry: Entry, one: Entry, other: Entry): Entry {
  const { key, v, pos } = (entry === one ? other : entry === other ? one : entry) as Entry & Recv
  return entry === one || entry === other ? { ...entry, key, v, pos } : entry
}
