/** Workers: 1, 2 and 4 processes on a sink that takes 20 ms a call. */
import { setTimeout as pause } from 'node:timers/promises'
import { begin } from '../measure.mjs'
import { hostMs, rounded, summary } from '../numbers.mjs'
import { items } from '../payload.mjs'
import { ratio } from '../rounds.mjs'
import { describeSystem, ours } from '../systems.mjs'

const size = { counts: [1, 2, 4], sinkMs: 20, warmEvents: 200 }
const limitMs = 120_000
/**
 * Small calls, one at a time: the sink is what takes time, not the cores that all of them share. As
 * many events as there are lanes: the same in a call, however lanes are shared out.
 */
const settings = { concurrency: 1, batch: 16 }

export default {
  name: 'workers',
  title: 'workers: events/s of 1, 2, 4 processes on a sink with 20 ms a call (16 events, one call at a time)',
  weight: 22,
  sizes: {
    tiny: { ...size, counts: [1, 4], rounds: 1, events: 500, warmEvents: 50 },
    quick: { ...size, rounds: 3, events: 4_000 },
    full: { ...size, rounds: 5, events: 30_000 },
  },

  async run(bench) {
    const { counts } = bench.size
    const rounds = await bench.rounds(counts.map(String), (count) => one(bench, Number(count)))
    const rate = (count) => (round) => round[count].perSecond
    return {
      figures: {
        speedup: ratio(rounds, rate(4), rate(1)),
        eventsPerSecond: Object.fromEntries(
          counts.map((count) => [count, rounded(summary(rounds.map(rate(count))).median)]),
        ),
      },
      raw: { settings, rounds },
    }
  },
}

/** Workers that run and have met a few events; then a backlog is committed at once, and the clock starts. */
async function one(bench, count) {
  const { events, warmEvents, sinkMs } = bench.size
  return bench.with(ours, {}, async (database) => {
    const crew = Array.from({ length: count }, () => hire(database.url, { sinkMs }))
    await Promise.all(crew.map(({ ready }) => ready))
    await commit(database.url, 1, warmEvents)
    await untilDone(crew, warmEvents)
    await bench.stage.checkpoint()
    const startedMs = await commit(database.url, warmEvents + 1, events)
    await untilDone(crew, warmEvents + events)
    for (const { tell } of crew) tell({ word: 'stop' })
    const results = await Promise.all(crew.map(({ result }) => result))
    await Promise.all(crew.map(({ exited }) => exited))
    await bench.check(ours, { database, events: warmEvents + events })
    const seconds = (Math.max(...results.map((result) => result.lastMs)) - startedMs) / 1_000
    return { seconds, perSecond: events / seconds, shares: results.map((result) => result.count) }
  })
}

/** All of them in one transaction; when its COMMIT was answered. */
async function commit(url, from, count) {
  const producer = await (await describeSystem(ours)).producer(url)
  await producer.transaction(async () => {}, items(from, count))
  const committedMs = hostMs()
  await producer.end()
  return committedMs
}

function hire(url, sink) {
  const state = { count: 0 }
  let isReady
  const ready = new Promise((resolve) => {
    isReady = resolve
  })
  const heard = (message) => {
    if (message.word === 'count') state.count = message.count
    else isReady()
  }
  const process = begin({ role: 'consume', system: ours, url, settings, sink }, { heard })
  process.result.catch(isReady)
  return { ...process, ready, state }
}

async function untilDone(crew, events) {
  const untilMs = performance.now() + limitMs
  const seen = () => crew.reduce((sum, { state }) => sum + state.count, 0)
  while (seen() < events) {
    if (performance.now() > untilMs) throw new Error(`${seen()} of ${events} after ${limitMs} ms`)
    await Promise.race([pause(20), ...crew.map(({ result }) => result)])
  }
}
