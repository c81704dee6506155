/** Bulk emit: 1,000 events a transaction against a bare insert of the same bytes. */
import { measure } from '../measure.mjs'
import { ratio, ratios, summaries } from '../rounds.mjs'
import { ours } from '../systems.mjs'

const size = { perTransaction: 1_000 }

export default {
  name: 'bulk',
  title: 'bulk emit: events/s in transactions of 1,000',
  weight: 12,
  sizes: {
    tiny: { rounds: 1, events: 500, perTransaction: 100, peers: false },
    quick: { ...size, rounds: 3, events: 60_000, peers: false },
    full: { ...size, rounds: 7, events: 200_000, peers: true },
  },

  async run(bench) {
    const { events, perTransaction } = bench.size
    const peers = bench.size.peers ? bench.peers : []
    const names = ['plain', ours, ...peers]
    const slow = (system) => (peers.includes(system) ? events / 10 : events)
    const rounds = await bench.rounds(names, (system) =>
      bench.with(system, {}, ({ url }) => measure({ role: 'bulk', system, url, events: slow(system), perTransaction })),
    )
    const rate = (round, name = ours) => round[name].perSecond
    return {
      figures: {
        vsRaw: ratio(rounds, rate, (round) => rate(round, 'plain')),
        vsPeers: peers.length > 0 ? ratios(rounds, peers, rate, rate) : null,
      },
      raw: { eventsPerSecond: summaries(rounds, names, rate), rounds },
    }
  },
}
