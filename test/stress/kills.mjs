// kill -9 of a worker while one of its calls is in flight: the sink holds the call and says so,
// the worker dies, and the sink confirms that the caller vanished without an answer.

import { setTimeout as pause } from 'node:timers/promises'
import { pick, seeded } from './random.mjs'
import { say, startWorker } from './stage.mjs'

const modes = ['accept', 'accept', 'late', 'drop']
const callWaitMs = 1_500

/**
 * Spread over the time up to `planMs`; on a slow machine it may take until `limitMs`. Each killed
 * worker is restarted at once, and the next one may die before it is back.
 */
export async function killWorkers(stage, planMs, limitMs) {
  const random = seeded(stage.options.seed ^ 0x5eed)
  const wanted = stage.options.kills
  const result = { kills: 0, killsInFlight: 0 }
  const absent = new Map()
  while (result.kills < wanted && performance.now() < limitMs) {
    const everyMs = (planMs - performance.now()) / (wanted - result.kills)
    const nextMs = performance.now() + everyMs * (0.5 + random() * 0.7)
    const present = [...stage.workers.keys()].filter((index) => !absent.has(index))
    const index = pick(random, present)
    if (index === undefined) await Promise.race(absent.values())
    else if (await killOne(stage, index, pick(random, modes), result)) {
      absent.set(
        index,
        startWorker(stage, index).finally(() => absent.delete(index)),
      )
      await pause(Math.max(0, nextMs - performance.now()))
    }
  }
  await Promise.all(absent.values())
  return result
}

/** False: this worker made no call in time (it has no lanes yet). */
async function killOne(stage, index, mode, result) {
  const worker = stage.workers[index]
  const held = hears(stage, (said) => said.held === worker.name, callWaitMs)
  await stage.sink.ask('arm', { worker: worker.name, mode })
  if ((await held) === undefined) {
    await stage.sink.ask('disarm', { worker: worker.name })
    return false
  }
  const cut = hears(stage, (said) => said.cut === worker.name, 3_000)
  await worker.kill()
  result.kills++
  stage.history.write({ k: 'fault', name: 'worker-kill', who: worker.name, mode })
  if ((await cut) !== undefined) result.killsInFlight++
  if (result.kills % 5 === 0) say(`kills ${result.kills}, in flight ${result.killsInFlight}`)
  return true
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
