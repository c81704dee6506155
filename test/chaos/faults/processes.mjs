// Faults of processes: kill -9 while a call is in flight, a pause beyond the lease, a polite restart.
// Only processes that the harness started are signalled, by their own pid.

import { setTimeout as pause } from 'node:timers/promises'
import { commitPrepared, startWorker, startWriter } from '../stage.mjs'

const callWaitMs = 1_500
const targetWaitMs = 10_000

const indexOf = (who) => Number(who.split('-')[1]) - 1

/** One fault of a process at a time; undefined: it is not there in time. */
async function withProcess(stage, who, work) {
  const limitMs = performance.now() + targetWaitMs
  while (stage.busy.has(who)) {
    if (performance.now() > limitMs) return { happened: false, why: 'busy' }
    await pause(50)
  }
  stage.busy.set(who, true)
  try {
    return await work(indexOf(who))
  } finally {
    stage.busy.delete(who)
  }
}

/**
 * The sink holds a call of the worker and says so, the worker dies, and the sink confirms that the
 * caller vanished without an answer. A worker without a call in time is killed all the same.
 */
export function killWorker(stage, { who, mode, laterMs }) {
  return withProcess(stage, who, async (index) => {
    const held = hears(stage, (said) => said.held === who, callWaitMs)
    await stage.sinks.ask('arm', { worker: who, mode, laterMs })
    const inFlight = (await held) !== undefined
    if (!inFlight) await stage.sinks.ask('disarm', { worker: who })
    const cut = hears(stage, (said) => said.cut === who, 3_000)
    await stage.workers[index].kill()
    const confirmed = inFlight && (await cut) !== undefined
    await startWorker(stage, index)
    return { happened: true, inFlight: confirmed }
  })
}

function hears(stage, wanted, limitMs) {
  return new Promise((resolve) => {
    const done = (said) => {
      clearTimeout(timer)
      stage.sinkHears.delete(hear)
      resolve(said)
    }
    const hear = (said) => wanted(said) && done(said)
    const timer = setTimeout(done, limitMs)
    stage.sinkHears.add(hear)
  })
}

export function pauseWorker(stage, { who, ms }) {
  return withProcess(stage, who, async (index) => {
    const { pid } = stage.workers[index]
    process.kill(pid, 'SIGSTOP')
    await pause(ms)
    process.kill(pid, 'SIGCONT')
    return { happened: true }
  })
}

/** SIGTERM as an orchestrator sends it; the worker stops politely and is started again. */
export function restartWorker(stage, { who }) {
  return withProcess(stage, who, async (index) => {
    const worker = stage.workers[index]
    process.kill(worker.pid, 'SIGTERM')
    const polite = await Promise.race([worker.exited, pause(10_000, undefined, { ref: false })])
    await worker.kill()
    await startWorker(stage, index)
    return { happened: true, polite: polite?.code === 0 }
  })
}

export function killWriter(stage, { who }) {
  return withProcess(stage, who, async (index) => {
    await stage.writers[index].kill()
    const before = new Date()
    const { incarnation } = stage.writers[index]
    await startWriter(stage, index)
    await commitPrepared(stage, { before, of: `w${index + 1}.${incarnation}.` })
    return { happened: true }
  })
}
