// How long it took after each fault until everybody had accepted the markers written at its end.

import { markerAggregates } from './workload.mjs'

/** The longest in ms, and the longest by kind of fault. */
export function recoveries(entries) {
  const markers = new Set(markerAggregates())
  const keys = markerKeys(entries)
  const subs = entries.filter(({ k, effects, table, aggregates }) => {
    return k === 'sub' && !effects && !table && (aggregates == null || aggregates.includes('row'))
  })
  const accepted = acceptances(entries, keys, markers)
  const byKind = {}
  for (const { tx, after, endedAt } of entries.filter(({ k }) => k === 'marker')) {
    const events = [...keys.values()].filter((event) => event.tx === tx)
    const times = subs.flatMap(({ name }) => events.map(({ agg, v }) => firstAt(accepted.get(`${name}\n${agg}`), v)))
    const tookMs = Math.max(0, ...times.map((t) => t - endedAt))
    byKind[after] = Math.max(byKind[after] ?? 0, tookMs)
  }
  const finite = Object.values(byKind).filter(Number.isFinite)
  return { recoveryMsMax: Math.max(0, ...finite), recoveryMs: byKind }
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
