// The plan of faults: what happens when, to whom and for how long. The seed alone decides, so
// `--repro SEED` makes the same plan again; what the operating system makes of it may differ.

import { between, pick, seeded } from './random.mjs'

/** How often in a minute, how often at least, how long (ms), and what else is drawn. */
const timed = {
  'worker-kill': { perMinute: 9, least: 1, draw: kill },
  'worker-pause': { perMinute: 3, least: 1, ms: [3_600, 5_500], draw: aWorker },
  'worker-restart': { perMinute: 3, draw: aWorker },
  'writer-kill': { perMinute: 3, draw: aWriter },
  'db-crash': { perMinute: 2, least: 1 },
  'backend-cut': { perMinute: 16, least: 2, draw: (random) => ({ doing: pick(random, backends) }) },
  'db-mute': { perMinute: 2, ms: [3_500, 5_500], draw: aWorker },
  'db-hole': { perMinute: 1, ms: [6_000, 8_000], draw: oneOrAll },
  'db-slow': {
    perMinute: 2,
    ms: [1_500, 4_000],
    draw: (random, who) => ({ ...aWorker(random, who), delayMs: between(random, 50, 300) }),
  },
  'db-cut': { perMinute: 3, draw: aClient },
  'db-slices': { perMinute: 2, ms: [1_000, 2_000], draw: aWorker },
  'sink-mute': { perMinute: 2, ms: [2_500, 4_500], draw: aWorker },
  'sink-hole': { perMinute: 1, ms: [4_000, 6_000], draw: aWorker },
  'sink-slow': {
    perMinute: 2,
    ms: [1_500, 4_000],
    draw: (random, who) => ({ ...aWorker(random, who), delayMs: between(random, 50, 400) }),
  },
  'sink-cut': { perMinute: 4, draw: aWorker },
  'sink-cut-answer': { perMinute: 4, ms: [500, 1_500], draw: aWorker },
  'sink-slices': { perMinute: 2, ms: [1_000, 2_000], draw: aWorker },
  'sink-refuse': { perMinute: 2, least: 1, ms: [1_500, 4_000] },
  'sink-hang': { perMinute: 1, ms: [2_000, 5_000] },
  'sink-503': { perMinute: 2, least: 1, ms: [2_000, 5_000] },
  'pool-exhausted': { perMinute: 1, ms: [2_000, 2_000], draw: aWorker },
  replay: { perMinute: 2, draw: (random) => ({ sub: pick(random, ['webhook', 'search', 'index']) }) },
  rebuild: { perMinute: 1 },
}

/** These last for the whole run. */
const lasting = ['sink-trouble', 'poison', 'late-tasks', 'clock', 'odd-transactions', 'open-transaction']

const backends = ['step', 'step', 'claim', 'settle', 'listen', 'any']
/** When the write of a killed worker lands: at once, with its end, after the take-over, or never. */
const killModes = ['accept', 'accept', 'late', 'later', 'drop']
/** Whose call is held: anybody's, or one whose crash is a case of its own. */
const killedCalls = ['any', 'any', 'mail', 'tasks']
/** Where the last write wins, an old one that lands last stays. */
const lastWriters = ['search', 'webhook', 'partner', 'tasks']

export const faultNames = [...Object.keys(timed), ...lasting]

/** In the order of time. `atMs` counts from the start of the writers. `eachOnce`: all kinds are there. */
export function planFaults({ seed, seconds, faults, workers, writers, eachOnce = false }) {
  const plan = []
  for (const name of faults.filter((name) => Object.hasOwn(timed, name))) {
    // A stream of its own: leaving one kind out does not change the others.
    const random = seeded(seed ^ hash(name))
    const { perMinute, least = 0, ms, draw = () => ({}) } = timed[name]
    const share = (perMinute * seconds) / 60
    const count = Math.max(eachOnce ? 1 : least, Math.floor(share) + (random() < share % 1 ? 1 : 0))
    for (let n = 0; n < count; n++) {
      const lengthMs = ms === undefined ? 0 : between(random, ms[0], ms[1])
      const lastMs = Math.max(1_500, seconds * 1_000 - lengthMs - 1_500)
      plan.push({ name, atMs: between(random, 1_000, lastMs), ms: lengthMs, ...draw(random, { workers, writers }) })
    }
  }
  return plan.sort((a, b) => a.atMs - b.atMs)
}

function hash(text) {
  let sum = 0x811c9dc5
  for (const letter of text) sum = Math.imul(sum ^ letter.charCodeAt(0), 0x01000193) >>> 0
  return sum
}

function aWorker(random, { workers }) {
  return { who: `worker-${between(random, 1, workers)}` }
}

/** The path of one worker, or the database's host: all of them at once. */
function oneOrAll(random, who) {
  return random() < 0.5 ? { who: 'workers' } : aWorker(random, who)
}

/** Not the first of several: it holds the transaction that stays open. */
function aWriter(random, { writers }) {
  return { who: `writer-${between(random, Math.min(2, writers), writers)}` }
}

/** A worker, or all writers: COMMITs without an answer. */
function aClient(random, who) {
  return random() < 0.3 ? { who: 'writers' } : aWorker(random, who)
}

function kill(random, who) {
  const mode = pick(random, killModes)
  return { ...aWorker(random, who), mode, sub: pick(random, mode === 'later' ? lastWriters : killedCalls) }
}
