/** Workers: 1, 2 and 4 processes on a sink that takes 20 ms a call. */
import { setTimeout as pause } from 'node:timers/promises'
import { begin } from '../measure.mjs'
import { rounded, summary } from '../numbers.mjs'
import { ratio } from '../rounds.mjs'
import { ours } from '../systems.mjs'

const size = { counts: [1, 2, 4], sinkMs: 20 }
const limitMs = 120_000
/** Small calls: the sink is what takes time, not the cores that all of them share. */
const settings = { concurrency: 4, batch: 25 }

export default {
  name: 'workers',
  title:
    'workers: events/s of 1, 2, 4 processes on a sink with 20 ms a call (25 events, 4 calls at once)',
  weight: 22,
  sizes: {
    tiny: { ...size, counts: [1, 4], rounds: 1, events: 500 },
    quick: { ...size, rounds: 3, events: 12_000 },
    full: { ...size, rounds: 5, events: 60_000 },
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

async function one(bench, count) {
  const { events, sinkMs } = bench.size
  return bench.with(ours, { events }, async (database) => {
    await bench.stage.checkpoint()
    const sink = { sinkMs, waitForGo: true }
    const crew = Array.from({ length: count }, () => hire(database.url, sink))
    await Promise.all(crew.map(({ ready }) => ready))
    for (const { tell } of crew) tell({ word: 'go' })
    await untilDone(crew, events)
    for (const { tell } of crew) tell({ word: 'stop' })
    const results = await Promise.all(crew.map(({ result }) => result))
    await Promise.all(crew.map(({ exited }) => exited))
    await bench.check(ours, { database, events })
    const startedMs = Math.min(...results.map((result) => result.startedMs))
    const seconds = (Math.max(...results.map((result) => result.lastMs)) - startedMs) / 1_000
    return { seconds, perSecond: events / seconds, shares: results.map((result) => result.count) }
  })
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
