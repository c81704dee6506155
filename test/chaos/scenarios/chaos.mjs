// The main run: the whole workload, all subscriptions, and the faults that the seed has planned.

import { setTimeout as pause } from 'node:timers/promises'
import { finish } from '../faults/operators.mjs'
import { carryOut } from '../faults.mjs'
import { judge } from '../judge.mjs'
import { planFaults } from '../plan.mjs'
import { missedOf } from '../reached.mjs'
import { recoveries } from '../recovery.mjs'
import * as stages from '../stage.mjs'
import { all, catalogue } from '../subscriptions.mjs'

/** Few enough that the fault `pool-exhausted` is soon there. */
export const settings = { max_connections: '150' }

const BLOCKED = `select count(*)::int as n from outbox.delivery d where d.state = 'retrying' and exists (
  select from outbox.log l where l.lane = d.lane and l.hash = d.hash and l.pos > d.pos)`

export function chaos(options) {
  return withStage(options, { subscriptions: [...all, catalogue], settings }, play)
}

export async function withStage(options, setup, work) {
  const stage = await stages.openStage(options, setup)
  let result
  try {
    result = await work(stage)
    return result
  } finally {
    await stages.closeStage(stage, options.keep || (result?.ok === false && options.keepRed && !process.env.CI))
  }
}

export async function play(stage, databasePort) {
  const { seconds, seed, faults } = stage.options
  const plan = planFaults(stage.options)
  await stages.startSinks(stage)
  await stages.startNetwork(stage, databasePort)
  await stages.startWorkers(stage)
  stages.say(`seed ${seed}: ${stage.options.workers} workers, ${plan.length} faults planned`)
  await stages.startWriters(stage, {
    holdOpen: faults.includes('open-transaction'),
    oddities: faults.includes('odd-transactions'),
  })
  const startedMs = performance.now()
  const halfway = pause((seconds * 1_000) / 2).then(() => stage.writers[0].ask('release'))
  const samples = sample(stage)
  stage.samples = samples
  const counts = await carryOut(stage, plan)
  await pause(Math.max(0, startedMs + seconds * 1_000 - performance.now()))
  await Promise.race([halfway, pause(2_000)])
  return end(stage, counts, samples)
}

async function end(stage, counts, samples) {
  if (stage.failed !== undefined) throw stage.failed
  await stage.sinks.ask('quiet')
  await stages.stopWriters(stage)
  const drained = await stages.drain(stage, () => finish(stage))
  samples.stop()
  const stuck = await stages.stuckWorkers(stage)
  await stages.stopWorkers(stage)
  stage.stopping = true
  await stage.sinks.ask('stop')
  const found = await judge(stage, counts.happened, samples)
  return conclude(stage, counts, { ...drained, stuck }, found)
}

/** Followers that wait behind a retrying head are seen only while they do. */
function sample(stage) {
  const samples = { blocked: 0, stop: () => clearInterval(timer) }
  let looking = false
  const timer = setInterval(async () => {
    if (looking) return
    looking = true
    const rows = await stages
      .withClient(stage.url, (client) => client.query(BLOCKED))
      .catch(() => ({ rows: [{ n: 0 }] }))
    samples.blocked += rows.rows[0].n
    looking = false
  }, 700).unref()
  return samples
}

function conclude(stage, { planned, happened }, drained, found) {
  const { seed, seconds, workers } = stage.options
  const { entries, latencyMs, ...counts } = found
  const happenedOf = (...names) => names.reduce((sum, name) => sum + (happened[name] ?? 0), 0)
  const { recoveryMsMax, recoveryMs, ...recovery } = recoveries(entries)
  const failed = (stage.journeys ?? []).filter(({ state }) => state !== 'succeeded')
  for (const journey of failed)
    stages.say(`✗ ${journey.kind} ended ${journey.state} in ${journey.phase}: ${journey.error}`)
  const absent = Object.keys(planned).filter((name) => !happened[name])
  const missed = [...absent, ...missedOf(found.reached, stage.options)]
  return {
    seed,
    seconds,
    ...counts,
    kills: happenedOf('worker-kill', 'writer-kill'),
    dbCrashes: happenedOf('db-crash'),
    sinkOutages: happenedOf('sink-refuse', 'sink-hang', 'sink-503'),
    recoveryMsMax,
    recoveryMs,
    ...recovery,
    latencyMs: { p50: latencyMs.p50, p99: latencyMs.p99 },
    latencyMsMax: latencyMs.max,
    drainMs: drained.tookMs,
    open: drained.open,
    stuck: drained.stuck,
    workers,
    faults: happened,
    journeysFailed: failed.length,
    missed,
    counts: missed.length === 0,
    ok: found.ok && drained.open === 0 && drained.stuck.length === 0 && failed.length === 0,
  }
}
