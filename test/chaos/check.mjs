// The judge: what the writers committed against what the sinks accepted, from their own histories,
// in one pass each. It knows nothing of the engine. `node test/chaos/check.mjs FOLDER` judges a
// history that was kept.
//
//   sub      who listens: {name, order, coalesce, aggregates?, versions?, effects?, table?}
//   try      before COMMIT: {tx, ev: [[key, aggregate, v], …]}   then ack · fail · cut
//   recv     accepted, before it was answered: {sub, key, v, pos}
//   poison   rejected for ever: {sub, key}
//   row      at the end, of outbox.delivery: {sub, key, state}
//   open     at the end, above a cursor: {sub, key}
//   state    at the end, of a destination that is a table: {sub, agg, v}
//   done     at the end, of chaos.tx: {tx}      version   at the end, of chaos.row: {agg, v}

import { argv } from 'node:process'
import { pathToFileURL } from 'node:url'
import { readHistory } from './history.mjs'

const shownMax = 5
const excused = new Set(['dead', 'unknown', 'discarded'])
const unfinished = new Set(['pending', 'retrying', 'sending'])
const recorded = new Set(['delivered', 'unknown', 'discarded'])

/** Counts, and the first violations in words. */
export function checkHistory(entries) {
  const byKind = groupByKind(entries)
  const of = (kind) => byKind.get(kind) ?? []
  const found = {
    lost: [],
    ghosts: [],
    orderViolations: [],
    stale: [],
    sentTwice: [],
    unrecorded: [],
    wronglyDead: [],
    unfinished: [],
  }
  const writes = readWrites(of, found)
  const subs = new Map(of('sub').map((sub) => [sub.name, newSub(sub)]))
  const judged = { writes, rows: readRows(of('row')), open: readOpen(of, writes), found, latencies: [] }
  for (const recv of of('recv')) receive(recv, subs, judged)
  for (const { sub, agg, v } of of('state')) subs.get(sub)?.last.set(agg, { v, pos: 0 })
  for (const sub of subs.values()) conclude(sub, of('version'), judged)
  died(of, writes, found)
  return {
    ...countWrites(writes),
    delivered: sum(subs, ({ accepted }) => accepted.size),
    duplicates: sum(subs, ({ duplicates }) => duplicates),
    duplicatesBy: Object.fromEntries([...subs.values()].map(({ name, duplicates }) => [name, duplicates])),
    ...Object.fromEntries(Object.entries(found).map(([name, list]) => [name, list.length])),
    staleBy: staleBy(found.stale, subs),
    dead: of('row').filter(({ state }) => state === 'dead').length,
    unknown: of('row').filter(({ state }) => state === 'unknown').length,
    latencyMs: percentiles(judged.latencies),
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

function newSub({ name, order, coalesce, aggregates, versions = false, effects = false, table = false }) {
  const listens = (agg) => aggregates == null || aggregates.includes(agg.split('/')[0])
  const latest = coalesce === 'latest'
  const ordered = order === 'aggregate' && !latest && !effects
  return {
    name,
    listens,
    latest,
    ordered,
    versions,
    effects,
    table,
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

/**
 * What the run did not finish: its event is open, or waits behind one of its aggregate that is. That
 * is no loss, but a run that ends so is red all the same.
 */
function readOpen(of, writes) {
  const lowest = new Map()
  const rows = of('row').filter(({ state }) => unfinished.has(state))
  for (const { sub, key } of [...of('open'), ...rows]) {
    const { agg, v } = writes.keys.get(key) ?? {}
    const at = `${sub}\n${agg}`
    lowest.set(at, Math.min(lowest.get(at) ?? v, v))
  }
  return { waits: (sub, agg, v) => v >= (lowest.get(`${sub}\n${agg}`) ?? Number.POSITIVE_INFINITY) }
}

function receive(recv, subs, judged) {
  const { writes, found } = judged
  const sub = subs.get(recv.sub)
  const write = writes.keys.get(recv.key)
  const wrong = whyGhost(recv, sub, write)
  if (wrong !== undefined) {
    found.ghosts.push({ sub: recv.sub, agg: write?.agg, says: `${recv.key} ${wrong}` })
    return
  }
  if (sub.accepted.has(recv.key)) again(sub, write, found)
  else if (write.ackAt !== undefined) judged.latencies.push(Math.max(0, recv.t - write.ackAt))
  sub.accepted.add(recv.key)
  const highest = sub.highest.get(write.agg) ?? 0
  if (sub.ordered && write.v > highest + 1) jump(sub, write, highest, judged)
  sub.highest.set(write.agg, Math.max(highest, write.v))
  speak(sub, write, Number(recv.pos ?? write.v))
}

/** I10: an effect happens at most once. Elsewhere a repeat is counted against its bound. */
function again(sub, { agg, key }, found) {
  if (sub.effects) found.sentTwice.push({ sub: sub.name, agg, says: `${key} was accepted twice` })
  else sub.duplicates++
}

/** The last word on an aggregate: the highest position where the destination has versions. */
function speak(sub, { agg, v }, pos) {
  if (sub.versions && (sub.last.get(agg)?.pos ?? -1) > pos) return
  sub.last.set(agg, { v, pos })
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
function jump(sub, { agg, v, key }, highest, { writes, rows, found }) {
  for (let skipped = highest + 1; skipped < v; skipped++) {
    const over = byVersion(writes).get(`${agg}\n${skipped}`)
    const state = over && rows.state(sub.name, over.key)
    if (state === 'dead' || state === 'discarded') continue
    const says = `${key}: v ${v} accepted after ${highest}`
    found.orderViolations.push({ sub: sub.name, agg, says })
    return
  }
}

function byVersion(writes) {
  if (writes.index !== undefined) return writes.index
  writes.index = new Map()
  for (const write of writes.keys.values()) {
    if (write.committed) writes.index.set(`${write.agg}\n${write.v}`, write)
  }
  return writes.index
}

function conclude(sub, versions, judged) {
  const newest = new Map(versions.map(({ agg, v }) => [agg, v]))
  if (!sub.table) {
    for (const write of judged.writes.keys.values()) if (write.committed) arrived(sub, write, newest, judged)
  }
  if (!sub.latest && !sub.ordered) return
  for (const { agg, v } of versions) endsNewest(sub, agg, v, judged)
}

function arrived(sub, write, newest, { writes, rows, open, found }) {
  const { key, agg, v } = write
  const state = rows.state(sub.name, key)
  if (sub.accepted.has(key)) {
    if (sub.effects && !recorded.has(state) && !unfinished.has(state)) {
      found.unrecorded.push({ sub: sub.name, agg, says: `${key} was accepted, its row says ${state}` })
    }
    return
  }
  if (!sub.listens(agg) || excused.has(state)) return
  // With coalescing an event may be passed over for a newer one that is still to come.
  if (open.waits(sub.name, agg, sub.latest ? (newest.get(agg) ?? v) : v)) {
    found.unfinished.push({ sub: sub.name, agg, says: `${key} (v ${v}) was not delivered in time` })
    return
  }
  if (sub.latest && superseded(sub, write, newest.get(agg) ?? v, { writes, rows })) return
  found.lost.push({ sub: sub.name, agg, says: `${key} (v ${v}) was never accepted` })
}

/** Only what its destination rejected for ever may be a dead letter: nothing else wears an event out. */
function died(of, writes, found) {
  const rejected = new Set(of('poison').map(({ sub, key }) => `${sub}\n${key}`))
  for (const { sub, key, state } of of('row')) {
    if (state !== 'dead' || rejected.has(`${sub}\n${key}`)) continue
    found.wronglyDead.push({ sub, agg: writes.keys.get(key)?.agg, says: `${key} is dead, but was never rejected` })
  }
}

/** By a later event that was accepted, or that is a dead letter now. */
function superseded(sub, { agg, v }, newest, { writes, rows }) {
  if ((sub.highest.get(agg) ?? 0) > v) return true
  for (let later = v + 1; later <= newest; later++) {
    const key = byVersion(writes).get(`${agg}\n${later}`)?.key
    if (key !== undefined && excused.has(rows.state(sub.name, key))) return true
  }
  return false
}

/** Whoever keeps a state ends with the newest one that was not given up. */
function endsNewest(sub, agg, newest, { writes, rows, open, found }) {
  if (!sub.listens(agg) || open.waits(sub.name, agg, newest)) return
  const last = sub.last.get(agg)?.v ?? 0
  for (let v = newest; v > last; v--) {
    const key = byVersion(writes).get(`${agg}\n${v}`)?.key
    if (key !== undefined && excused.has(rows.state(sub.name, key))) {
      if (sub.latest) return
      continue
    }
    found.stale.push({ sub: sub.name, agg, says: `ends with v ${last}, the row has ${newest}` })
    return
  }
}

/** Destinations with versions apart from those where the last write wins. */
function staleBy(stale, subs) {
  const counts = { versions: {}, lastWrite: {} }
  for (const { sub } of stale) {
    const of = subs.get(sub).versions ? counts.versions : counts.lastWrite
    of[sub] = (of[sub] ?? 0) + 1
  }
  return counts
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

/** `bounds`: how many repeats each subscription may have had (bound.mjs); none if it is not named. */
export function violationsOf(found, bounds = {}) {
  const { lost, ghosts, orderViolations, stale, sentTwice, unrecorded, wronglyDead, unfinished } = found
  const wrong = lost + ghosts + orderViolations + stale + sentTwice + unrecorded + wronglyDead + unfinished
  return wrong + beyond(found, bounds).reduce((sum, { n }) => sum + n, 0)
}

/** I4: the subscriptions with more repeats than they may have had. */
export function beyond({ duplicatesBy }, bounds = {}) {
  return Object.entries(duplicatesBy)
    .map(([sub, count]) => ({ sub, count, n: count - (bounds[sub]?.all ?? 0) }))
    .filter(({ n }) => n > 0)
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) {
  const { violations, ...counts } = checkHistory(readHistory(argv[2]))
  for (const violation of violations) console.error(violation)
  console.log(JSON.stringify(counts))
}
