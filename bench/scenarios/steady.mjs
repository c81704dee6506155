/** Steady state: producers and one worker at the same time on the same cores, until all is settled. */
import { begin, measure } from '../measure.mjs'
import { ratios, summaries } from '../rounds.mjs'
import { ours } from '../systems.mjs'

/** `warm`: this part of the events comes before the clock starts. */
const size = { connections: 4, perTransaction: 100, warm: 0.4 }

export default {
  name: 'steady',
  title: 'steady state: events/s produced (100 a transaction, 4 connections) and delivered together',
  weight: 38,
  sizes: {
    tiny: { ...size, rounds: 1, events: 500, peerEvents: {} },
    quick: {
      ...size,
      rounds: 3,
      events: 100_000,
      peerEvents: {
        'pg-boss': 30_000,
        'graphile-worker': 30_000,
        'pg-transactional-outbox': 2_400,
      },
    },
    full: {
      ...size,
      rounds: 5,
      events: 400_000,
      peerEvents: {
        'pg-boss': 100_000,
        'graphile-worker': 100_000,
        'pg-transactional-outbox': 15_000,
      },
    },
  },

  async run(bench) {
    const rounds = await bench.rounds(bench.everyone, (system) => one(bench, system))
    const rate = (round, name = ours) => round[name].perSecond
    const eventsPerSecond = summaries(rounds, bench.everyone, rate)
    return {
      figures: {
        eventsPerSecond: Math.round(eventsPerSecond[ours].median),
        vsPeers: ratios(rounds, bench.peers, rate, rate),
      },
      raw: { eventsPerSecond, rounds },
    }
  },
}

async function one(bench, system) {
  const { connections, perTransaction, peerEvents, warm } = bench.size
  const events = peerEvents[system] ?? bench.size.events
  const warmEvents = Math.floor((events * warm) / perTransaction) * perTransaction
  return bench.with(system, {}, async (database) => {
    const { url } = database
    await bench.stage.checkpoint()
    const task = {
      role: 'drain',
      system,
      backlogs: [{ url, events }],
      settings: bench.settings(system),
    }
    const worker = await started(task)
    const produced = await measure({
      role: 'produce',
      system,
      url,
      events,
      connections,
      perTransaction,
      warmEvents,
    })
    const [drained] = (await worker.result).runs
    await worker.exited
    await bench.check(system, { database, events })
    const seconds = (drained.settledMs - produced.startedMs) / 1_000
    return {
      events,
      seconds,
      perSecond: (events - warmEvents) / seconds,
      producedMs: produced.endedMs - produced.startedMs,
    }
  })
}

/** A process whose worker runs. */
async function started(task) {
  let isReady
  const ready = new Promise((resolve) => {
    isReady = resolve
  })
  const process = begin(task, { heard: isReady })
  await Promise.race([ready, process.result])
  return process
}
