/** Fan-out: 1, 4 and 16 subscriptions to the same events, one worker process. */
import { measure } from '../measure.mjs'
import { rounded, summary } from '../numbers.mjs'
import { ratio } from '../rounds.mjs'
import { ours } from '../systems.mjs'

const connections = 8
const size = { counts: [1, 4, 16] }

export default {
  name: 'fanout',
  title: 'fan-out: events/s delivered to each of 1, 4, 16 subscriptions',
  weight: 30,
  sizes: {
    tiny: { counts: [1, 16], rounds: 1, events: 300, warmEvents: 0, ms: 50, warmMs: 10 },
    quick: { ...size, rounds: 3, events: 20_000, warmEvents: 1_000, ms: 1_200, warmMs: 300 },
    full: { ...size, rounds: 5, events: 100_000, warmEvents: 2_000, ms: 4_000, warmMs: 500 },
  },

  async run(bench) {
    const { counts } = bench.size
    const rounds = await bench.rounds(counts.map(String), (count) => one(bench, Number(count)))
    const total = (count) => (round) => round[count].totalPerSecond
    const each = (count) => summary(rounds.map(total(count))).median / count
    const emitted = (count) => (round) => round[count].emitPerSecond
    return {
      figures: {
        perSubscription: Object.fromEntries(counts.map((count) => [count, rounded(each(count))])),
        emitRatio: ratio(rounds, emitted(16), emitted(1)),
        totalRatio: ratio(rounds, total(16), total(1)),
      },
      raw: { rounds },
    }
  },
}

/** Drained first, so that the subscriptions are installed when the write path is measured. */
async function one(bench, subscriptions) {
  const { events, ms, warmMs } = bench.size
  return bench.with(ours, { events }, async (database) => {
    await bench.stage.checkpoint()
    const backlog = { subscriptions }
    const drained = await bench.drainWarm(ours, database, events, { backlog })
    const task = { role: 'emit', system: ours, url: database.url, connections, ms, warmMs }
    const { perSecond } = await measure(task)
    return { totalPerSecond: drained.perSecond, seconds: drained.seconds, emitPerSecond: perSecond }
  })
}
