// One transaction that holds a transaction id stays open for the whole run: everything else flows,
// statements stay fast, and the append-only tables see no update and no delete.

import { setTimeout as pause } from 'node:timers/promises'
import { percentiles } from '../check.mjs'
import { judge } from '../judge.mjs'
import * as stages from '../stage.mjs'
import { statementTimes } from '../statement-times.mjs'
import { named } from '../subscriptions.mjs'
import { withStage } from './chaos.mjs'

const p99MaxMs = 1_000
const statementMaxMs = 5
/** Every statement with its duration, in the server's own log. */
const settings = { log_min_duration_statement: '0', log_line_prefix: '%p ' }

export function openTransaction(options) {
  return withStage(
    options,
    { subscriptions: named('webhook', 'search', 'broker', 'partner'), settings, audit: false },
    play,
  )
}

async function play(stage) {
  const { seconds, seed, workers } = stage.options
  await stages.startSinks(stage)
  await stages.startWorkers(stage)
  // No row locked for seconds by others: the latency is Hermod's own. No hot row: on a sink that
  // takes one event of an aggregate per call, its queue would be the sink's own latency.
  await stages.startWriters(stage, { holdOpen: true, hot: 0, skew: 0, oddities: false })
  await pause(seconds * 1_000)
  const times = statementTimes(stage.postgres.dataDir)
  await stages.stopWriters(stage)
  const drained = await stages.drain(stage)
  await stages.stopWorkers(stage)
  stage.stopping = true
  await stage.sinks.ask('stop')
  const found = await judge(stage)
  const latencyMs = othersLatency(found.entries)
  const fast = Object.values(times).every(({ p99 }) => p99 < statementMaxMs)
  for (const [name, { n, p50, p99, max }] of Object.entries(times)) {
    stages.say(`${name}: ${n} statements, p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`)
  }
  const { emitted, delivered, duplicates, lost, ghosts, orderViolations } = found
  return {
    scenario: 'open-transaction',
    seed,
    seconds,
    workers,
    emitted,
    delivered,
    duplicates,
    lost,
    ghosts,
    orderViolations,
    latencyMs,
    statementMs: times,
    drainMs: drained.tookMs,
    ok: found.ok && drained.open === 0 && latencyMs.p99 < p99MaxMs && fast,
  }
}

/** Of every event but those of the transaction that was open. */
function othersLatency(entries) {
  const acks = new Map(entries.filter(({ k }) => k === 'ack').map(({ tx, t }) => [tx, t]))
  const seen = new Set()
  const values = []
  for (const { k, sub, key, t } of entries) {
    if (k !== 'recv' || key.startsWith('open-') || seen.has(sub + key)) continue
    seen.add(sub + key)
    const ackAt = acks.get(key.slice(0, key.lastIndexOf('-')))
    if (ackAt !== undefined) values.push(Math.max(0, t - ackAt))
  }
  return percentiles(values)
}
