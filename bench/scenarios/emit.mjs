/** Write path: what an outbox costs the transaction it rides in. */
import { measure } from '../measure.mjs'
import { ratio, ratios, summaries } from '../rounds.mjs'
import { ours } from '../systems.mjs'

const connections = 8
/** Until V8 has compiled what runs: a transaction costs half as much after that. */
const size = { connections, warmMs: 3_000 }

export default {
  name: 'emit',
  title: 'write path: transactions/s of update + emit + commit on 8 connections',
  weight: 46,
  sizes: {
    tiny: { ...size, rounds: 1, ms: 100, warmMs: 20 },
    quick: { ...size, rounds: 3, ms: 1_000, warmMs: 1_500 },
    full: { ...size, rounds: 7, ms: 4_000 },
  },

  async run(bench) {
    const names = ['plain', 'own-table', ...bench.everyone]
    const { ms, warmMs } = bench.size
    const rounds = await bench.rounds(names, (system) =>
      bench.with(system, {}, ({ url }) => measure({ role: 'emit', system, url, connections, ms, warmMs })),
    )
    const rate = (round, name = ours) => round[name].perSecond
    return {
      figures: {
        vsPlain: ratio(rounds, rate, (round) => rate(round, 'plain')),
        vsInsert: ratio(rounds, rate, (round) => rate(round, 'own-table')),
        vsPeers: ratios(rounds, bench.peers, rate, rate),
      },
      raw: { transactionsPerSecond: summaries(rounds, names, rate), rounds },
    }
  },
}
