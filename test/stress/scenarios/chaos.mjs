// The main run: the whole workload, three workers, and kill -9 in the middle of their calls.

import { setTimeout as pause } from 'node:timers/promises'
import { judge } from '../judge.mjs'
import { killWorkers } from '../kills.mjs'
import * as stages from '../stage.mjs'
import { all } from '../subscriptions.mjs'

export function chaos(options) {
  return withStage(options, { subscriptions: all }, play)
}

export async function withStage(options, setup, work) {
  const stage = await stages.openStage(options, setup)
  let result
  try {
    result = await work(stage)
    return result
  } finally {
    await stages.closeStage(stage, options.keep || (result?.ok === false && !process.env.CI))
  }
}

export async function play(stage) {
  const { seconds, seed } = stage.options
  await stages.startSink(stage)
  await stages.startWorkers(stage)
  stages.say(`seed ${seed}: ${stage.options.workers} workers, ${stage.options.kills} kills planned`)
  await stages.startWriter(stage, { holdOpen: true })
  const startedMs = performance.now()
  const halfway = pause((seconds * 1_000) / 2).then(() => stage.writer.ask('release'))
  const plannedMs = startedMs + Math.max(seconds - 5, seconds * 0.7) * 1_000
  const killed = await killWorkers(stage, plannedMs, startedMs + (seconds + 10) * 1_000)
  await halfway
  await pause(Math.max(0, startedMs + seconds * 1_000 - performance.now()))
  await enough(stage, startedMs + (seconds + 10) * 1_000)
  await stages.stopWriter(stage)
  await stages.drain(stage)
  await stages.stopWorkers(stage)
  await stage.sink.ask('stop')
  return conclude(stage, killed)
}

/** On a slow machine the writers get a little longer to make the number of events of the run. */
async function enough({ writer, options: { rate, seconds } }, limitMs) {
  for (;;) {
    const { emitted = 0 } = (await writer.ask('count')) ?? {}
    if (emitted >= rate * seconds * 0.85 || performance.now() > limitMs) return
    await pause(200)
  }
}

async function conclude(stage, { kills, killsInFlight }) {
  const { seed, seconds, workers } = stage.options
  const found = await judge(stage, { kills })
  const { emitted, acked, delivered, duplicates, duplicatesBound, lost, ghosts } = found
  const { orderViolations, dead, unknown, latencyMs, ok } = found
  stages.say(`latency max ${latencyMs.max} ms`)
  return {
    seed,
    seconds,
    emitted,
    acked,
    delivered,
    duplicates,
    duplicatesBound,
    lost,
    ghosts,
    orderViolations,
    dead,
    unknown,
    kills,
    killsInFlight,
    workers,
    latencyMs: { p50: latencyMs.p50, p99: latencyMs.p99 },
    ok: ok && kills === stage.options.kills && killsInFlight === kills,
  }
}
