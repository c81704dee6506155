/** Drain: one worker process against a backlog that is committed but not yet numbered. */
import { ratio, ratios, summaries } from '../rounds.mjs'
import { ours } from '../systems.mjs'

export default {
  name: 'drain',
  title: 'drain: events/s of one worker process into a null sink',
  weight: 60,
  sizes: {
    tiny: { rounds: 1, events: 500, peerEvents: {}, warmEvents: 0, pageRows: 100 },
    quick: {
      rounds: 3,
      events: 100_000,
      warmEvents: 10_000,
      pageRows: 5_000,
      // A rate needs no more of them, and a smaller backlog is in their favour.
      peerEvents: {
        'pg-boss': 30_000,
        'graphile-worker': 30_000,
        'pg-transactional-outbox': 2_000,
      },
    },
    full: {
      rounds: 5,
      events: 200_000,
      warmEvents: 20_000,
      pageRows: 5_000,
      peerEvents: { 'pg-transactional-outbox': 20_000 },
    },
  },

  async run(bench) {
    const rounds = await bench.rounds(bench.everyone, (system) => one(bench, system))
    const rate = (round, name = ours) => round[name].perSecond
    return {
      figures: {
        vsPeers: ratios(rounds, bench.peers, rate, rate),
        vsScan: ratio(rounds, rate, (round) => round[ours].scan.perSecond),
        eventsPerSecond: Math.round(summaries(rounds, [ours], rate)[ours].median),
      },
      raw: {
        eventsPerSecond: summaries(rounds, bench.everyone, rate),
        scanPerSecond: summaries(rounds, ['scan'], (round) => round[ours].scan.perSecond).scan,
        rounds,
      },
    }
  },
}

async function one(bench, system) {
  const { peerEvents, pageRows } = bench.size
  const events = peerEvents[system] ?? bench.size.events
  return bench.with(system, { events }, async (database) => {
    await bench.stage.checkpoint()
    const task = { role: 'scan', pageRows }
    const scan = system === ours && (await bench.drainWarm(system, database, events, { task }))
    const { runs, ...drained } = await bench.drainWarm(system, database, events)
    return {
      ...drained,
      ...(scan && { scan: { seconds: scan.seconds, perSecond: scan.perSecond } }),
    }
  })
}
