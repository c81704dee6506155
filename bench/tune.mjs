/**
 * Finds the settings that serve each system best on this machine: every candidate drains the same
 * backlog, interleaved; the winners are kept and used by `npm run bench` from then on.
 *
 *   node bench/tune.mjs [--tiny] [--only pg-boss,…]
 */
import { parseArgs } from 'node:util'
import { Bench } from './bench.mjs'
import { commit, machine } from './machine.mjs'
import { installedPeers, installPeers } from './peers.mjs'
import { clearProgress, progress } from './print.mjs'
import { keepTuned, tunedSettings } from './results.mjs'
import { summaries } from './rounds.mjs'
import { openStage } from './stage.mjs'
import { describeSystem, ours } from './systems.mjs'

const { values: given } = parseArgs({
  options: { tiny: { type: 'boolean', default: false }, only: { type: 'string' } },
})
const size = given.tiny
  ? { rounds: 1, warmEvents: 50, events: () => 200 }
  : { rounds: 3, warmEvents: 2_000, events: (name) => eventsOf(name) }

/** Long enough for a steady rate, each at its own speed. */
function eventsOf(name) {
  if (name === ours) return 200_000
  return name === 'pg-transactional-outbox' ? 5_000 : 50_000
}

async function tune(bench, name) {
  const { candidates } = await describeSystem(name)
  const labels = candidates.map((candidate) => JSON.stringify(candidate))
  const events = size.events(name)
  const rounds = await bench.rounds(labels, (label) =>
    bench.with(name, { events }, async (database) => {
      const { perSecond } = await bench.drainWarm(name, database, events, {
        task: { settings: JSON.parse(label) },
      })
      return perSecond
    }),
  )
  const rates = summaries(rounds, labels, (round, label) => round[label])
  const best = labels.reduce((a, b) => (rates[b].median > rates[a].median ? b : a))
  return { best: JSON.parse(best), rates }
}

if (!given.tiny) installPeers()
const names = given.only?.split(',') ?? [ours, ...Object.keys(installedPeers())]
const stage = await openStage({ durable: !given.tiny })
try {
  const found = {}
  for (const name of names) {
    const say = (text) => progress(name, text)
    const bench = new Bench({
      stage,
      peers: [],
      size,
      settings: {},
      untilMs: Number.POSITIVE_INFINITY,
      say,
    })
    found[name] = await tune(bench, name)
    clearProgress()
    console.log(name, found[name])
  }
  const settings = Object.fromEntries(names.map((name) => [name, found[name].best]))
  const about = { at: new Date().toISOString(), commit: commit(), machine: machine() }
  if (!given.tiny) keepTuned({ ...about, settings: { ...tunedSettings(), ...settings }, found })
} finally {
  await stage.close()
}
