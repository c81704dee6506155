// The destination is away for the whole of --seconds (connections refused, or 429 for every call)
// while writers go on: nothing is spent, one probe at a time, and soon after everything is there.

import { setTimeout as pause } from 'node:timers/promises'
import { judge } from '../judge.mjs'
import * as stages from '../stage.mjs'
import { named } from '../subscriptions.mjs'
import { withStage } from './chaos.mjs'

const settleMs = 2_000
const caughtUpMaxMs = 10_000
/** A refused connection takes no time at all: attempts this close to each other count as one time. */
const widenMs = { refused: 50, throttled: 0 }

const SPENT = `select (select count(*)::int from outbox.delivery) as rows,
  (select count(*)::int from outbox.attempt where failed > 0) as attempts`
const HEAD = 'select coalesce(max(pos), 0)::text as head from outbox.log'
const BEHIND = `select count(*)::int as n from (select distinct on (subscription, lane) subscription, lane, pos
    from outbox.cursor order by subscription, lane, fence desc, pos desc) c
  where exists (select from outbox.log l where l.lane = c.lane and l.pos > c.pos and l.pos <= $1)`

export function outage(options) {
  const subscriptions = named('webhook', 'search').map((sub) => ({ ...sub, batch: { count: 500 } }))
  return withStage(options, { subscriptions }, play)
}

async function play(stage) {
  const { seconds, scenario } = stage.options
  await stages.startSinks(stage)
  await stages.startWorkers(stage)
  await stages.startWriters(stage, { hot: 0, skew: 0 })
  await pause(2_000)
  await stage.sinks.ask('outage', { kind: scenario, on: true })
  const from = Date.now()
  stages.say(`${scenario} for ${seconds} s`)
  await pause(seconds * 1_000)
  const spent = await one(stage, SPENT)
  const to = Date.now()
  await stage.sinks.ask('outage', { kind: scenario, on: false })
  const caughtUpMs = await caughtUp(stage)
  stages.say(`caught up after ${caughtUpMs} ms`)
  await stages.stopWriters(stage)
  const drained = await stages.drain(stage)
  await stages.stopWorkers(stage)
  stage.stopping = true
  await stage.sinks.ask('stop')
  return conclude(stage, { from: from + settleMs, to }, spent, caughtUpMs, drained)
}

async function one(stage, text, values) {
  return stages.withClient(stage.url, async (client) => (await client.query(text, values)).rows[0])
}

/** Until everything numbered before the end of the outage is delivered; writers go on meanwhile. */
function caughtUp(stage) {
  const startedMs = performance.now()
  return stages.withClient(stage.url, async (client) => {
    const { head } = (await client.query(HEAD)).rows[0]
    for (;;) {
      const { n } = (await client.query(BEHIND, [head])).rows[0]
      const tookMs = Math.round(performance.now() - startedMs)
      if (n === 0 || tookMs > caughtUpMaxMs * 4) return tookMs
      await pause(50)
    }
  })
}

async function conclude(stage, outageTime, spent, caughtUpMs, drained) {
  const { scenario, seed, seconds, workers } = stage.options
  const found = await judge(stage, { 'sink-refuse': 1 })
  const after = await one(stage, SPENT)
  const probes = probesOf(found.entries, scenario, outageTime, stage.subscriptions)
  const rows = Math.max(spent.rows, after.rows)
  const attempts = Math.max(spent.attempts, after.attempts)
  const { emitted, delivered, duplicates, duplicatesBound, lost, ghosts, orderViolations } = found
  const clean = rows === 0 && attempts === 0 && probes.atOnce <= 1
  return {
    scenario,
    seed,
    seconds,
    workers,
    emitted,
    delivered,
    duplicates,
    duplicatesBound,
    lost,
    ghosts,
    orderViolations,
    deliveryRows: rows,
    attemptsSpent: attempts,
    probes: probes.count,
    probesAtOnce: probes.atOnce,
    caughtUpMs,
    ok: found.ok && clean && caughtUpMs <= caughtUpMaxMs && drained.open === 0,
  }
}

/**
 * Calls during the outage, judged per subscription (each has a breaker): the sink's own log where
 * it answers, and what the callers met where nobody listens.
 */
function probesOf(entries, scenario, { from, to }, subscriptions) {
  const kind = scenario === 'throttled' ? 'refused' : 'callfail'
  const calls = entries.filter((entry) => entry.k === kind && entry.from >= from && entry.to <= to)
  const counts = subscriptions.map(({ name }) =>
    overlap(
      calls.filter(({ sub }) => sub === name),
      widenMs[scenario],
    ),
  )
  return { count: calls.length, atOnce: Math.max(...counts) }
}

/** The most intervals that hold one moment. */
function overlap(calls, widen) {
  const ends = calls.flatMap(({ from, to }) => [
    [from, 1],
    [to + widen, -1],
  ])
  ends.sort((a, b) => a[0] - b[0] || a[1] - b[1])
  let now = 0
  let most = 0
  for (const [, step] of ends) {
    now += step
    most = Math.max(most, now)
  }
  return most
}
