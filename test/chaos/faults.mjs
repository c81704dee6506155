// The faults of a plan, carried out at their time. Each tells the history when it began and ended,
// and says whether it really happened; then markers measure how long the recovery takes.

import { setTimeout as pause } from 'node:timers/promises'
import * as database from './faults/database.mjs'
import * as operators from './faults/operators.mjs'
import * as processes from './faults/processes.mjs'
import { mark } from './markers.mjs'
import { callMs } from './options.mjs'
import { say } from './stage.mjs'

const network =
  (side, kind) =>
  async (stage, { who = 'workers', ms, delayMs }) => {
    const name = `${who}/${side}`
    const { met } = await stage.proxy.ask('fault', { name, kind, ms, delayMs })
    return { happened: kind === 'refuse' || met > 0, met }
  }

const outage =
  (kind) =>
  async (stage, { ms }) => {
    await stage.sinks.ask('outage', { kind, on: true })
    await pause(ms)
    await stage.sinks.ask('outage', { kind, on: false })
    return { happened: true }
  }

const acts = {
  'worker-kill': processes.killWorker,
  'worker-pause': processes.pauseWorker,
  'worker-restart': processes.restartWorker,
  'writer-kill': processes.killWriter,
  'db-crash': database.crash,
  'backend-cut': database.cutBackend,
  'pool-exhausted': database.exhaust,
  'db-mute': network('db', 'mute'),
  'db-hole': network('db', 'hole'),
  'db-slow': network('db', 'slow'),
  'db-cut': network('db', 'cut'),
  'db-slices': network('db', 'slices'),
  'sink-mute': network('sink', 'mute'),
  'sink-hole': network('sink', 'hole'),
  'sink-slow': network('sink', 'slow'),
  'sink-cut': network('sink', 'cut'),
  'sink-cut-answer': network('sink', 'cut-answer'),
  'sink-slices': network('sink', 'slices'),
  'sink-refuse': network('sink', 'refuse'),
  'sink-hang': outage('hang'),
  'sink-503': outage('503'),
  replay: operators.replay,
  rebuild: operators.rebuild,
}

/** All of the plan, each at its time and beside each other. Returns how often each kind happened. */
export async function carryOut(stage, plan) {
  const startedMs = performance.now()
  const counts = { planned: countBy(plan), happened: {} }
  stage.away = new Set()
  await Promise.all(
    plan.map(async (fault) => {
      await pause(Math.max(0, startedMs + fault.atMs - performance.now()))
      if (await one(stage, fault)) counts.happened[fault.name] = (counts.happened[fault.name] ?? 0) + 1
    }),
  )
  return counts
}

async function one(stage, fault) {
  const { name, ...details } = fault
  const from = Date.now()
  try {
    const { happened, ...more } = await acts[name](stage, fault)
    stage.history.write({ k: 'fault', name, happened, from, until: Date.now(), ...details, ...more })
    if (!happened) return false
    say(`${name} ${[details.who, details.mode, details.doing, details.sub, more.doing].filter(Boolean).join(' ')}`)
    stage.quietMs = Math.max(stage.quietMs, performance.now() + stage.options.leaseMs + callMs + 2_500)
    await mark(stage, name)
    return true
  } catch (error) {
    stage.history.write({
      k: 'fault',
      name,
      happened: false,
      from,
      until: Date.now(),
      ...details,
      error: String(error),
    })
    say(`${name} did not happen: ${error.message}`)
    return false
  }
}

function countBy(plan) {
  const counts = {}
  for (const { name } of plan) counts[name] = (counts[name] ?? 0) + 1
  return counts
}
