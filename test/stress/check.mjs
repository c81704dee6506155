// The judge: what the writers committed against what the sinks accepted, from their own histories,
// in one pass each. It knows nothing of the engine. `node test/stress/check.mjs FOLDER` judges a
// history that was kept.
//
//   sub      who listens: {name, order, coalesce, aggregates?}
//   try      before COMMIT: {tx, ev: [[key, aggregate, v], …]}   then ack · fail · cut
//   recv     accepted, before it was answered: {sub, key, v}
//   row      at the end, of outbox.delivery: {sub, key, state}
//   done     at the end, of chaos.tx: {tx}      version   at the end, of chaos.row: {agg, v}

import { argv } from 'node:process'
import { pathToFileURL } from 'node:url'
import { readHistory } from './history.mjs'

const shownMax = 5
const excused = new Set(['dead', 'unknown', 'discarded'])

/** Counts, and the first violations in words. */
export function checkHistory(entries) {
  const byKind = groupByKind(entries)
  const of = (kind) => byKind.get(kind) ?? []
  const found = { lost: [], ghosts: [], orderViolations: [] }
  const writes = readWrites(of, found)
  const subs = new Map(of('sub').map((sub) => [sub.name, newSub(sub)]))
  const rows = readRows(of('row'))
  const latencies = []
  for (const recv of of('recv')) receive(recv, subs, writes, rows, found, latencies)
  for (const sub of subs.values()) conclude(sub, writes, rows, of('version'), found)
  return {
    ...countWrites(writes),
    delivered: sum(subs, ({ accepted }) => accepted.size),
    duplicates: sum(subs, ({ duplicates }) => duplicates),
    lost: found.lost.length,
    ghosts: found.ghosts.length,
    orderViolations: found.orderViolations.length,
    dead: of('row').filter(({ state }) => state === 'dead').length,
    unknown: of('row').filter(({ state }) => state === 'unknown').length,
    latencyMs: percentiles(latencies),
    violations: describe(found, writes, of('recv')),
  }
}

/** Node 20 has no Map.groupBy. */
function groupByKind(entries) {
  const groups = new Map()
  for (const entry of entries) {
    const group = groups.get(entry.k)
    if (group === undefined) groups.set(entry.k, [entry])
    else group.push(entry)
  }
  return groups
}

/**
 * Every key with its transaction's end. chaos.tx is the truth where the answer is missing, and for
 * `synchronous_commit = off`, whose commits a crash may undo.
 */
function readWrites(of, found) {
  const done = new Set(of('done').map(({ tx }) => tx))
  const ends = new Map()
  for (const kind of ['ack', 'fail', 'cut']) {
    for (const entry of of(kind)) ends.set(entry.tx, entry)
  }
  const keys = new Map()
  const transactions = []
  for (const { tx, ev, async = false } of of('try')) {
    const end = ends.get(tx) ?? { k: 'cut' }
    const committed = done.has(tx)
    transactions.push({ tx, events: ev.length, end })
    if (end.k === 'fail' && committed) found.ghosts.push({ says: `${tx} failed, but is there` })
    if (end.k === 'ack' && !committed && !async) {
      found.lost.push({ says: `${tx} was answered, but PostgreSQL does not have it` })
    }
    const ackAt = end.k === 'ack' ? end.t : undefined
    for (const [key, agg, v] of ev) keys.set(key, { key, agg, v, committed, ackAt })
  }
  return { keys, transactions, done }
}

function countWrites({ transactions }) {
  const rolledBack = ({ end }) => end.k === 'fail' && end.why === 'rollback'
  const sent = transactions.filter((transaction) => !rolledBack(transaction))
  const count = (list) => list.reduce((total, { events }) => total + events, 0)
  return { emitted: count(sent), acked: count(sent.filter(({ end }) => end.k === 'ack')) }
}

function newSub({ name, order, coalesce, aggregates }) {
  const listens = (agg) => aggregates == null || aggregates.includes(agg.split('/')[0])
  const latest = coalesce === 'latest'
  const ordered = order === 'aggregate' && !latest
  return {
    name,
    listens,
    latest,
    ordered,
    duplicates: 0,
    accepted: new Set(),
    highest: new Map(),
    last: new Map(),
  }
}

/** sub → key → state. */
function readRows(entries) {
  const rows = new Map()
  for (const { sub, key, state } of entries) rows.set(`${sub}\n${key}`, state)
  return { state: (sub, key) => rows.get(`${sub}\n${key}`) }
}

function receive(recv, subs, writes, rows, found, latencies) {
  const sub = subs.get(recv.sub)
  const write = writes.keys.get(recv.key)
  const wrong = whyGhost(recv, sub, write)
  if (wrong !== undefined) {
    found.ghosts.push({ sub: recv.sub, agg: write?.agg, says: `${recv.key} ${wrong}` })
    return
  }
  if (sub.accepted.has(recv.key)) sub.duplicates++
  else if (write.ackAt !== undefined) latencies.push(Math.max(0, recv.t - write.ackAt))
  sub.accepted.add(recv.key)
  const highest = sub.highest.get(write.agg) ?? 0
  if (sub.ordered && write.v > highest + 1) jump(sub, write, highest, writes, rows, found)
  sub.highest.set(write.agg, Math.max(highest, write.v))
  sub.last.set(write.agg, write.v)
}

function whyGhost(recv, sub, write) {
  if (sub === undefined) return 'was accepted for nobody'
  if (write === undefined) return 'was never written'
  if (!write.committed) return 'was accepted although its transaction did not commit'
  if (write.v !== recv.v) return `was accepted as v ${recv.v}, written as ${write.v}`
  if (!sub.listens(write.agg)) return 'was accepted by a subscription that does not listen to it'
  return undefined
}

/** Forward only over events that an outcome has taken out of the way. */
function jump(sub, { agg, v, key }, highest, writes, rows, found) {
  writes.byVersion ??= indexByVersion(writes.keys)
  for (let skipped = highest + 1; skipped < v; skipped++) {
    const over = writes.byVersion.get(`${agg}\n${skipped}`)
    const state = over && rows.state(sub.name, over.key)
    if (state === 'dead' || state === 'discarded') continue
    const says = `${key}: v ${v} accepted after ${highest}`
    found.orderViolations.push({ sub: sub.name, agg, says })
    return
  }
}

function indexByVersion(keys) {
  const index = new Map()
  for (const write of keys.values()) {
    if (write.committed) index.set(`${write.agg}\n${write.v}`, write)
  }
  return index
}

function conclude(sub, writes, rows, versions, found) {
  for (const write of writes.keys.values()) {
    if (!write.committed || !sub.listens(write.agg) || sub.accepted.has(write.key)) continue
    if (sub.latest && (sub.highest.get(write.agg) ?? 0) > write.v) continue
    if (excused.has(rows.state(sub.name, write.key))) continue
    const says = `${write.key} (v ${write.v}) was never accepted`
    found.lost.push({ sub: sub.name, agg: write.agg, says })
  }
  if (!sub.latest) return
  for (const { agg, v } of versions) endsNewest(sub, agg, v, writes, rows, found)
}

/** Where state is carried, the last thing accepted is the newest. */
function endsNewest(sub, agg, v, writes, rows, found) {
  const last = sub.last.get(agg) ?? 0
  if (last === v || !sub.listens(agg)) return
  writes.byVersion ??= indexByVersion(writes.keys)
  const newest = writes.byVersion.get(`${agg}\n${v}`)
  if (newest !== undefined && excused.has(rows.state(sub.name, newest.key))) return
  found.orderViolations.push({ sub: sub.name, agg, says: `ends with v ${last}, the row has ${v}` })
}

function sum(subs, count) {
  return [...subs.values()].reduce((total, sub) => total + count(sub), 0)
}

export function percentiles(values) {
  const sorted = Float64Array.from(values).sort()
  const at = (share) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0
  return { p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 }
}

/** Each violation with what its sink accepted of the aggregate. */
function describe(found, writes, recvs) {
  const shown = Object.entries(found).flatMap(([kind, list]) =>
    list.slice(0, shownMax).map((violation) => ({ kind, ...violation })),
  )
  return shown.map(({ kind, sub, agg, says }) => {
    if (agg === undefined) return `${kind}: ${sub ?? ''} ${says}`
    const of = recvs.filter((recv) => recv.sub === sub && writes.keys.get(recv.key)?.agg === agg)
    const path = of.map(({ v, pos, call, by, t }) => `v${v}@${pos} call ${call} ${by} t${t % 1e6}`)
    return `${kind}: ${sub} ${agg}: ${says}\n    … ${path.slice(-12).join('\n      ')}`
  })
}

/** I4: each interruption may repeat what every claim loop had in hand, settle and fetch pipelined. */
export function duplicatesBound({ interruptions, loops, batchCount }) {
  return interruptions * loops * 2 * batchCount
}

export function violationsOf({ lost, ghosts, orderViolations, duplicates }, bound) {
  return lost + ghosts + orderViolations + Math.max(0, duplicates - bound)
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) {
  const { violations, ...counts } = checkHistory(readHistory(argv[2]))
  for (const violation of violations) console.error(violation)
  console.log(JSON.stringify(counts))
}
