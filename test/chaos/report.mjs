// What a run leaves behind: one Markdown line, and for many seeds a table of them.

import { faultNames } from './plan.mjs'
import { say } from './stage.mjs'

const columns = [
  ['seed', ({ seed }) => seed],
  ['emitted', ({ emitted }) => emitted],
  ['deliveries', ({ delivered }) => delivered],
  ['faults', ({ faults }) => list(faults)],
  ['lost', ({ lost }) => lost],
  ['ghosts', ({ ghosts }) => ghosts],
  ['order', ({ orderViolations }) => orderViolations],
  ['stale (versions / last write)', ({ staleBy: by }) => by && `${total(by.versions)} / ${total(by.lastWrite)}`],
  ['mail twice', ({ sentTwice }) => sentTwice],
  ['wrongly dead', ({ wronglyDead }) => wronglyDead],
  ['duplicates / bound', ({ duplicates: n, duplicatesBound: of }) => (n === undefined ? n : `${n} / ${of}`)],
  ['unfinished', ({ unfinished, open }) => (unfinished === undefined ? open : `${unfinished} (${open})`)],
  ['p50 / p99 ms', ({ latencyMs: ms }) => ms && `${ms.p50} / ${ms.p99}`],
  [
    'recovery p99 / max ms',
    ({ recoveryMsP99: p99, recoveryMsMax: max }) => (p99 === undefined ? p99 : `${p99} / ${max}`),
  ],
  ['of that calm', ({ recoveryCalmMs: ms }) => ms && `${ms.p99} / ${ms.max}`],
  ['missed', ({ missed }) => missed && (missed.join(' ') || 'none')],
  ['ok', (result) => (result.ok ? 'yes' : `**no**${why(result)}`)],
]

/** What the other columns do not say. */
function why({ broken = [], stuck = [], journeysFailed = 0 }) {
  const reasons = [...broken, ...stuck.map((name) => `${name} is stuck`)]
  if (journeysFailed > 0) reasons.push(`${journeysFailed} replays or rebuilds did not succeed`)
  return reasons.length === 0 ? '' : `: ${reasons.join('; ').replaceAll('|', '/').slice(0, 200)}`
}

const total = (counts = {}) => Object.values(counts).reduce((sum, n) => sum + n, 0)
const list = (counts = {}) =>
  Object.entries(counts)
    .map(([name, n]) => `${name} ${n}`)
    .join(', ')

export function markdownHead() {
  return [`| ${columns.map(([name]) => name).join(' | ')} |`, `|${columns.map(() => '---|').join('')}`].join('\n')
}

export function markdownLine(result) {
  return `| ${columns.map(([, value]) => value(result) ?? '–').join(' | ')} |`
}

export function writeReport({ scenario }, result) {
  if (scenario === 'chaos') process.stderr.write(`${markdownHead()}\n${markdownLine(result)}\n`)
  return result
}

/** One seed after the other; the table grows on stdout. What breaks one of them does not stop the others. */
export async function manySeeds(options, play) {
  const results = []
  console.log(markdownHead())
  for (let n = 0; n < options.seeds; n++) {
    const seed = options.seed + n
    say(`seed ${seed}, ${n + 1} of ${options.seeds}`)
    const result = await play({ ...options, seed }).catch((error) => ({ seed, ok: false, broken: [String(error)] }))
    results.push(result)
    console.log(markdownLine(result))
  }
  return summary(results)
}

function summary(results) {
  const red = results.filter(({ ok }) => !ok)
  const sum = (name) => results.reduce((all, result) => all + (result[name] ?? 0), 0)
  const faults = Object.fromEntries(faultNames.map((name) => [name, sumOf(results, 'faults', name)]))
  const names = [...new Set(results.flatMap(({ reached = {} }) => Object.keys(reached)))]
  return {
    seeds: results.map(({ seed }) => seed),
    red: red.map(({ seed }) => seed),
    uncounted: results.filter(({ counts }) => !counts).map(({ seed }) => seed),
    emitted: sum('emitted'),
    delivered: sum('delivered'),
    lost: sum('lost'),
    ghosts: sum('ghosts'),
    orderViolations: sum('orderViolations'),
    stale: sum('stale'),
    sentTwice: sum('sentTwice'),
    duplicates: sum('duplicates'),
    duplicatesBound: sum('duplicatesBound'),
    recoveryMsP99: Math.max(...results.map(({ recoveryMsP99 = 0 }) => recoveryMsP99)),
    recoveryMsMax: Math.max(...results.map(({ recoveryMsMax = 0 }) => recoveryMsMax)),
    faults,
    reached: Object.fromEntries(names.map((name) => [name, sumOf(results, 'reached', name)])),
    ok: red.length === 0,
  }
}

function sumOf(results, part, name) {
  return results.reduce((all, result) => all + (result[part]?.[name] ?? 0), 0)
}
