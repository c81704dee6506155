/**
 * Many subscriptions made at run time, few of them busy: latency of the busy ones among all, against the same ones
 * alone, and what the idle ones cost. One lane each; every busy one hears a type of its own.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { begin, measure } from '../measure.mjs'
import { percentile, rounded, summary } from '../numbers.mjs'
import { ours } from '../systems.mjs'

/** After `calmMs` everybody has been asked for a backlog. */
const size = { perSecond: 1_000, connections: 8, busy: 50, graceMs: 10_000, calmMs: 4_000 }

export default {
  name: 'subscriptions',
  title: 'subscriptions: 50 busy ones among thousands, against the 50 alone, at 1,000 events/s',
  weight: 30,
  sizes: {
    tiny: { ...size, rounds: 1, busy: 5, count: 20, events: 200, warmEvents: 50, idleMs: 200, calmMs: 200 },
    quick: { ...size, rounds: 1, count: 2_000, events: 8_000, warmEvents: 2_000, idleMs: 5_000 },
    full: { ...size, rounds: 3, count: 2_000, events: 20_000, warmEvents: 4_000, idleMs: 10_000 },
  },

  async run(bench) {
    const rounds = []
    for (let round = 0; round < bench.size.rounds; round++) {
      bench.say(`round ${round + 1}`)
      const alone = await one(bench, bench.size.busy)
      rounds.push({ alone, among: await one(bench, bench.size.count) })
    }
    const median = (pick) => rounded(summary(rounds.map(pick))?.median)
    const ratio = (name) => median(({ alone, among }) => among[name] / alone[name])
    const among = (name) => median((round) => round.among[name])
    return {
      figures: {
        count: bench.size.count,
        ...Object.fromEntries(
          ['p50Ms', 'p99Ms', 'bytesEach', 'rssMb', 'connections'].map((name) => [name, among(name)]),
        ),
        statementsPerSecond: among('statementsPerSecond'),
        p50Ratio: ratio('p50Ms'),
        p99Ratio: ratio('p99Ms'),
      },
      raw: { rounds },
    }
  },
}

async function one(bench, count) {
  const { events, warmEvents, busy, perSecond, connections, graceMs, idleMs, calmMs } = bench.size
  return bench.with(ours, {}, async ({ url }) => {
    await bench.stage.checkpoint()
    let done = 0
    let isReady
    const ready = new Promise((resolve) => {
      isReady = resolve
    })
    const heard = ({ word, count: reported }) => {
      if (word === 'count') done = reported
      else isReady()
    }
    const worker = begin({ role: 'hooks-serve', system: ours, url, count, events, idleMs, calmMs }, { heard })
    await Promise.race([ready, worker.result])
    const { commits } = await measure({
      role: 'hooks-produce',
      system: ours,
      ...{ url, busy, events, perSecond, connections },
    })
    const untilMs = performance.now() + graceMs
    while (done < events && performance.now() < untilMs) await pause(10)
    worker.tell({ word: 'stop' })
    const { acknowledged, ...cost } = await worker.result
    await worker.exited
    const missing = acknowledged.filter((at) => at === null).length
    if (missing > 0) throw new Error(`${missing} of ${events} events were not delivered`)
    const waits = acknowledged.map((at, n) => Math.max(0, at - commits[n])).slice(warmEvents)
    return { p50Ms: percentile(waits, 0.5), p99Ms: percentile(waits, 0.99), ...cost }
  })
}
