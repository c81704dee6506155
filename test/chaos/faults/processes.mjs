// Faults of processes: kill -9 while a call is in flight, a pause beyond the lease, a polite restart.
// Only processes that the harness started are signalled, by their own pid.

import { setTimeout as pause } from 'node:timers/promises'
import { change } from '../markers.mjs'
import { callMs } from '../options.mjs'
import { commitPrepared, startWorker, startWriter, withClient } from '../stage.mjs'
import { lateAggregates } from '../workload.mjs'

const callWaitMs = 2_500
const turnWaitMs = 10_000
const landBeforeMs = 600
const oldWriteWaitMs = 8_000
/** Later than the first renewal of a lease, and before the call is given up. */
const answerAfterMs = 300

const TAKEN = `select min(at) as at from chaos.lane_audit
  where subscription = $1 and at > $2 and owner is not null and by like 'worker-%' and by <> $3
    and (lane, fence - 1) in (select lane, fence from chaos.lane_audit where subscription = $1 and by = $3)`

const indexOf = (who) => Number(who.split('-')[1]) - 1

/**
 * One worker and one writer is away at a time, also where starting one takes long: who is left must
 * be able to go on. A fault whose turn does not come in time does not happen.
 */
async function withProcess(stage, who, work) {
  const kind = who.split('-')[0]
  const limitMs = performance.now() + turnWaitMs
  while (stage.away.has(kind)) {
    if (performance.now() > limitMs) return { happened: false, why: 'another is away' }
    await pause(50)
  }
  stage.away.add(kind)
  const from = Date.now()
  try {
    return { ...(await work(indexOf(who))), from }
  } finally {
    stage.away.delete(kind)
  }
}

/**
 * The sink holds a call of the worker and says so, the worker dies, and the sink confirms that the
 * caller vanished without an answer. A worker without a call in time is killed all the same.
 */
export function killWorker(stage, { who, mode, sub }) {
  if (mode === 'later') return withProcess(stage, who, () => killWithOldWrite(stage, sub))
  return withProcess(stage, who, async (index) => {
    const held = hears(stage, (said) => said.target === who, callWaitMs)
    await stage.sinks.ask('arm', { target: who, mode, sub })
    const inFlight = (await held) !== undefined
    if (!inFlight) await stage.sinks.ask('disarm', { target: who })
    const confirmed = await kill(stage, index)
    await startWorker(stage, index)
    return { happened: true, inFlight: inFlight && confirmed }
  })
}

async function kill(stage, index) {
  const worker = stage.workers[index]
  const cut = hears(stage, (said) => said.cut === worker.name, 3_000)
  await worker.kill()
  return (await cut) !== undefined
}

/**
 * A row of its own changes, and whoever sends it dies. Then it changes again; the old write lands after
 * something newer, and at the latest before a call deadline after the take-over is over: later nobody
 * promises anything.
 */
async function killWithOldWrite(stage, sub) {
  stage.oldWrites = (stage.oldWrites ?? 0) + 1
  const target = lateAggregates()[stage.oldWrites % lateAggregates().length]
  const held = hears(stage, (said) => said.target === target, oldWriteWaitMs)
  await stage.sinks.ask('arm', { target, mode: 'later', sub })
  await change(stage, 'old', [target])
  const call = await held
  await stage.sinks.ask('disarm', { target })
  if (call === undefined) return { happened: false, why: 'nobody sent it in time' }
  const index = stage.workers.findIndex(({ name }) => name === call.held)
  const { fullName } = stage.workers[index]
  const killedAt = new Date()
  await kill(stage, index)
  await Promise.all([
    startWorker(stage, index),
    landLater(stage, { sub, target, killedAt, fullName, worker: call.held }),
  ])
  return { happened: true, inFlight: true, victim: fullName }
}

async function landLater(stage, { sub, target, killedAt, fullName, worker }) {
  await change(stage, 'newer', [target])
  const takenAt = await takeOver(stage, fullName, sub, killedAt)
  await pause(Math.max(0, takenAt + callMs - landBeforeMs - Date.now()))
  await stage.sinks.ask('land', { worker })
}

/** When somebody else first took a lane of this subscription from the dead. */
async function takeOver(stage, fullName, sub, killedAt) {
  return withClient(stage.url, async (client) => {
    for (let look = 0; look < 200; look++) {
      const { rows } = await client.query(TAKEN, [sub, killedAt, fullName])
      if (rows[0].at !== null) return rows[0].at.getTime()
      await pause(50)
    }
    return Date.now()
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

/** `inCall`: while a call is under way, which is answered just after the worker is awake again. */
export function pauseWorker(stage, { who, ms, inCall = false }) {
  return withProcess(stage, who, async (index) => {
    const { pid } = stage.workers[index]
    const held = inCall ? await heldCall(stage, who) : false
    process.kill(pid, 'SIGSTOP')
    await pause(ms)
    process.kill(pid, 'SIGCONT')
    await pause(held ? answerAfterMs : 0)
    await stage.sinks.ask('letGo', { target: who })
    return { happened: true, held }
  })
}

async function heldCall(stage, who) {
  const held = hears(stage, (said) => said.target === who, callWaitMs)
  await stage.sinks.ask('arm', { target: who, mode: 'accept', sub: 'any' })
  if ((await held) !== undefined) return true
  await stage.sinks.ask('disarm', { target: who })
  return false
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
