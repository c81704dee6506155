// PostgreSQL crashes (immediate stop) and starts again, three times under load: nothing that was
// committed is lost, nothing that was not is delivered.

import { setTimeout as pause } from 'node:timers/promises'
import { judge } from '../judge.mjs'
import * as stages from '../stage.mjs'
import { all } from '../subscriptions.mjs'
import { withStage } from './chaos.mjs'

const crashes = 3

export function restart(options) {
  return withStage(options, { subscriptions: all }, play)
}

async function play(stage) {
  const { seconds, seed, workers } = stage.options
  await stages.startSink(stage)
  await stages.startWorkers(stage)
  await stages.startWriter(stage)
  for (let crash = 1; crash <= crashes; crash++) {
    await pause((seconds * 1_000) / (crashes + 1))
    await stage.postgres.stop('immediate')
    const crashedAt = new Date()
    await stage.postgres.start()
    await stages.commitPrepared(stage, crashedAt)
    stage.history.write({ k: 'fault', name: 'db-crash' })
    stages.say(`crash ${crash} of ${crashes}`)
  }
  await pause((seconds * 1_000) / (crashes + 1))
  await stages.stopWriter(stage)
  const drained = await stages.drain(stage)
  await stages.stopWorkers(stage)
  await stage.sink.ask('stop')
  const found = await judge(stage, { dbCrashes: crashes })
  const { emitted, acked, delivered, duplicates, duplicatesBound, lost, ghosts } = found
  const { orderViolations, dead, unknown, latencyMs, ok } = found
  return {
    scenario: 'restart',
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
    dbCrashes: crashes,
    workers,
    drainMs: drained.tookMs,
    latencyMs,
    ok: ok && drained.open === 0,
  }
}
