/**
 * Growth: does the rate of a drain fall as the backlog grows? The cost of starting and stopping a
 * worker, measured with a backlog of one batch, is taken off each time: it would make small backlogs
 * look slow.
 */
import { median, rounded, summary } from '../numbers.mjs'
import { ours } from '../systems.mjs'

export default {
  name: 'growth',
  title: 'growth: events/s of a drain by size of the backlog',
  weight: 20,
  sizes: {
    tiny: { rounds: 1, warmEvents: 10, fixed: 10, fixedTimes: 1, backlogs: { 300: 1, 500: 1 } },
    quick: {
      rounds: 3,
      warmEvents: 10_000,
      fixed: 2_000,
      fixedTimes: 3,
      backlogs: { 10000: 4, 100000: 1 },
    },
    full: {
      rounds: 5,
      warmEvents: 20_000,
      fixed: 2_000,
      fixedTimes: 5,
      backlogs: { 10000: 7, 100000: 2, 1000000: 1 },
    },
    long: {
      rounds: 3,
      warmEvents: 20_000,
      fixed: 2_000,
      fixedTimes: 5,
      backlogs: { 10000: 7, 100000: 2, 1000000: 1, 5000000: 1 },
    },
  },

  async run(bench) {
    const sizes = Object.keys(bench.size.backlogs).map(Number)
    const rounds = await bench.rounds([ours], () => one(bench, sizes))
    const perSecond = Object.fromEntries(
      sizes.map((events) => [events, summary(rounds.map((round) => round[ours].rates[events]))]),
    )
    const medians = Object.values(perSecond).map((rate) => rate.median)
    return {
      figures: {
        ratio: rounded(Math.min(...medians) / Math.max(...medians)),
        eventsPerSecond: Object.fromEntries(sizes.map((events) => [events, Math.round(perSecond[events].median)])),
      },
      raw: { eventsPerSecond: perSecond, rounds },
    }
  },
}

/** One warm process, every backlog in a database of its own. */
async function one(bench, sizes) {
  const { warmEvents, fixed, fixedTimes, backlogs: times } = bench.size
  const plan = [warmEvents, ...new Array(fixedTimes).fill(fixed)]
  for (const events of sizes) plan.push(...new Array(times[events]).fill(events))
  const backlogs = []
  try {
    for (const events of plan) {
      backlogs.push({ events, database: await bench.stage.database(ours, { events }) })
    }
    await bench.stage.checkpoint()
    const { runs, rssMb } = await bench.drain(ours, backlogs)
    for (const backlog of backlogs) await bench.check(ours, backlog)
    return { rates: rates(runs.slice(1), fixed, sizes), seconds: runs.map(timed), rssMb }
  } finally {
    for (const { database } of backlogs) await database.drop()
  }
}

function rates(runs, fixed, sizes) {
  const secondsOf = (events) => median(runs.filter((run) => run.events === events).map((run) => run.seconds))
  const fixedSeconds = secondsOf(fixed)
  return Object.fromEntries(sizes.map((events) => [events, (events - fixed) / (secondsOf(events) - fixedSeconds)]))
}

const timed = ({ events, seconds }) => ({ events, seconds })
