/**
 * One worker process that delivers what there is (or what comes) to a sink that only counts. The
 * clock runs from the start of the worker until everything is delivered and settled. Several
 * backlogs one after the other: the process is warm after the first.
 */
import { hostMs } from '../numbers.mjs'

export async function play(system, { backlogs, settings, sink = {} }, session) {
  const runs = []
  for (const backlog of backlogs) runs.push(await drain(system, backlog, { settings, ...sink }, session))
  return { runs, rssMb: process.resourceUsage().maxRSS / 1_000 }
}

async function drain(system, { url, events, subscriptions = 1 }, options, session) {
  const wanted = events * subscriptions
  let seen = 0
  let finish
  const all = new Promise((resolve) => {
    finish = resolve
  })
  const delivered = (count) => {
    seen += count
    if (seen >= wanted) finish()
  }
  const startedMs = hostMs()
  const consumer = await system.consumer(url, { ...options, subscriptions, delivered })
  session.tell({ word: 'ready' })
  await all
  const deliveredMs = hostMs()
  await consumer.stop()
  const settledMs = hostMs()
  await consumer.end?.()
  return {
    events,
    repeats: seen - wanted,
    startedMs,
    deliveredMs,
    settledMs,
    seconds: (settledMs - startedMs) / 1_000,
    perSecond: wanted / ((settledMs - startedMs) / 1_000),
  }
}
