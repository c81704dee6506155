// How long it took after each fault until everybody had accepted the markers written at its end.

import { percentiles } from './check.mjs'
import { markerAggregates } from './workload.mjs'

/**
 * Over all faults and subscriptions; the longest by kind of fault and by subscription. In ms. `calm`
 * leaves out the time during which another fault was under way.
 */
export function recoveries(entries) {
  const byKind = {}
  const bySub = {}
  const all = times(entries).filter(({ until }) => Number.isFinite(until))
  for (const { after, sub, tookMs } of all) {
    byKind[after] = Math.max(byKind[after] ?? 0, tookMs)
    bySub[sub] = Math.max(bySub[sub] ?? 0, tookMs)
  }
  const { p50, p99, max } = percentiles(all.map(({ tookMs }) => tookMs))
  const busy = merged(entries.filter(({ k, happened }) => k === 'fault' && happened))
  const calm = percentiles(all.map(({ from, until }) => until - from - overlap(busy, from, until)))
  return {
    recoveryMsMax: max,
    recoveryMsP50: p50,
    recoveryMsP99: p99,
    recoveryCalmMs: calm,
    recoveryMs: byKind,
    recoveryMsBySub: bySub,
  }
}

/** Times that overlap become one. */
function merged(faults) {
  const list = []
  for (const { from, until } of [...faults].sort((a, b) => a.from - b.from)) {
    const last = list.at(-1)
    if (last !== undefined && from <= last.until) last.until = Math.max(last.until, until)
    else list.push({ from, until })
  }
  return list
}

function overlap(busy, from, until) {
  return busy.reduce((sum, one) => sum + Math.max(0, Math.min(until, one.until) - Math.max(from, one.from)), 0)
}

/** One for each fault and subscription, from its end until the last marker; infinite if one never arrived. */
function times(entries) {
  const markers = new Set(markerAggregates())
  const keys = markerKeys(entries)
  const accepted = acceptances(entries, keys, markers)
  const subs = entries.filter(({ k, effects, table, aggregates }) => {
    return k === 'sub' && !effects && !table && (aggregates == null || aggregates.includes('row'))
  })
  return entries
    .filter(({ k }) => k === 'marker')
    .flatMap(({ tx, after, endedAt }) => {
      const events = [...keys.values()].filter((event) => event.tx === tx)
      return subs.map(({ name: sub }) => {
        const arrivals = events.map(({ agg, v }) => firstAt(accepted.get(`${sub}\n${agg}`), v))
        const until = Math.max(endedAt, ...arrivals)
        return { after, sub, from: endedAt, until, tookMs: until - endedAt }
      })
    })
}

function markerKeys(entries) {
  const keys = new Map()
  for (const { tx, ev } of entries.filter(({ k, tx }) => k === 'try' && tx.startsWith('mark-'))) {
    for (const [key, agg, v] of ev) keys.set(key, { tx, agg, v })
  }
  return keys
}

function acceptances(entries, keys, markers) {
  const lists = new Map()
  for (const { k, sub, key, t } of entries) {
    const event = k === 'recv' ? keys.get(key) : undefined
    if (event === undefined || !markers.has(event.agg)) continue
    const at = `${sub}\n${event.agg}`
    lists.set(at, [...(lists.get(at) ?? []), { t, v: event.v }])
  }
  return lists
}

function firstAt(list = [], v) {
  return list.find((each) => each.v >= v)?.t ?? Number.POSITIVE_INFINITY
}
