/**
 * A worker that runs until it is told to stop, reports how much was acknowledged by the sink so far,
 * and can remember when each event was.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { hostMs } from '../numbers.mjs'

const reportMs = 20
const stopMs = 5_000

export async function play(system, { url, settings, sink = {}, remember = 0 }, session) {
  const acknowledged = remember > 0 ? new Array(remember).fill(null) : undefined
  let count = 0
  let lastMs = 0
  const delivered = (added, idAt) => {
    lastMs = hostMs()
    count += added
    for (let n = 0; acknowledged && n < added; n++) acknowledged[idAt(n) - 1] ??= lastMs
  }
  const stop = session.told('stop')
  const consumer = await system.consumer(url, { ...sink, settings, delivered })
  session.tell({ word: 'ready' })
  const report = setInterval(() => session.tell({ word: 'count', count, lastMs }), reportMs)
  await stop
  clearInterval(report)
  // A system that could not keep up is not waited for.
  await Promise.race([consumer.stop(), pause(stopMs)])
  await consumer.end?.()
  return { count, lastMs, acknowledged }
}
