/**
 * `npm run bench`: measures Hermod, its peers and the physical limit side by side, prints a table and
 * keeps the raw results. This process only conducts; measured work runs in processes of its own.
 */
import { Bench } from './bench.mjs'
import { commit, machine } from './machine.mjs'
import { endProcesses, reuseProcesses } from './measure.mjs'
import { readOptions, usage } from './options.mjs'
import { installedPeers, installPeers } from './peers.mjs'
import { clearProgress, printHeader, printScenario, printVerdicts, progress } from './print.mjs'
import { keep, tunedSettings } from './results.mjs'
import { scenarios, sizeOf } from './scenarios.mjs'
import { openStage, serverSettings } from './stage.mjs'
import { describeSystem, ours } from './systems.mjs'

/** Of the five minutes a quick run may take: building before and stopping after need some. */
const quickMs = 280_000

const options = read()
if (options.help) console.log(usage)
else await main()

function read() {
  try {
    return readOptions(process.argv.slice(2))
  } catch (error) {
    console.error(`${error.message}\n\n${usage}`)
    process.exit(2)
  }
}

async function main() {
  if (options.mode === 'tiny') reuseProcesses()
  const peers = findPeers()
  const stage = await openStage({ durable: options.mode !== 'tiny' })
  process.once('SIGINT', () => process.exit(130))
  process.once('SIGTERM', () => process.exit(143))
  try {
    const about = await describe(stage, peers)
    if (!options.json) printHeader(about)
    const figures = await runAll(stage, about)
    if (options.json) console.log(JSON.stringify(complete(figures, about)))
    else if (options.mode === 'tiny') console.log('\nSizes for a smoke run: the figures mean nothing.')
    else printVerdicts(figures)
  } catch (error) {
    clearProgress()
    console.error(error.message)
    process.exitCode = 1
  } finally {
    clearProgress()
    endProcesses()
    await stage.close()
  }
}

/** A smoke run takes what is there. */
function findPeers() {
  if (options.before !== undefined) {
    process.env.HERMOD_BENCH_BEFORE = options.before
    return { before: options.before }
  }
  if (options.peers?.length === 0) return {}
  if (options.mode !== 'tiny' && !installPeers()) {
    console.error('The peers could not be installed: their figures will be missing.')
  }
  const found = Object.entries(installedPeers())
  return Object.fromEntries(found.filter(([name]) => options.peers?.includes(name) ?? true))
}

async function describe(stage, peers) {
  const settings = { postgres: serverSettings }
  const reasons = {}
  for (const name of [ours, ...Object.keys(peers)]) {
    const system = await describeSystem(name)
    const smoke = options.mode === 'tiny' ? system.smoke : undefined
    settings[name] = smoke ?? tunedSettings()[name] ?? system.settings
    reasons[name] = system.reasons
  }
  const versions = { node: process.versions.node, postgres: stage.version, ...peers }
  return {
    mode: options.mode,
    at: new Date().toISOString(),
    commit: commit(),
    machine: machine(),
    versions,
    settings,
    reasons,
  }
}

async function runAll(stage, about) {
  const figures = {}
  const endMs = options.mode === 'quick' ? quickMs : Number.POSITIVE_INFINITY
  const left = [...options.chosen]
  for (const scenario of options.chosen) {
    const share = scenario.weight / left.reduce((sum, { weight }) => sum + weight, 0)
    left.shift()
    const untilMs = performance.now() + (endMs - performance.now()) * share
    figures[scenario.name] = await runOne(scenario, stage, about, untilMs)
  }
  return figures
}

async function runOne(scenario, stage, about, untilMs) {
  const { name, title } = scenario
  const size = sizeOf(scenario, options.mode)
  const peers = Object.keys(about.versions).filter((key) => !['node', 'postgres'].includes(key))
  const say = (text) => progress(name, text)
  say(title)
  await stage.checkpoint()
  const startedMs = performance.now()
  const bench = new Bench({ stage, peers, size, settings: about.settings, untilMs, say })
  const { figures, raw } = await scenario.run(bench)
  const seconds = (performance.now() - startedMs) / 1_000
  await stage.forget()
  const rounds = raw.rounds.length
  if (options.keep) keep(options.mode, name, { ...about, size, seconds, figures, raw })
  if (!options.json) printScenario({ title, size, figures, rounds })
  say(`done in ${seconds.toFixed(1)} s, ${rounds} rounds`)
  return figures
}

/** All scenarios by name, null for those that were left out, and what they were measured with. */
function complete(figures, about) {
  const named = Object.fromEntries(scenarios.map(({ name }) => [name, figures[name] ?? null]))
  const sizes = Object.fromEntries(options.chosen.map((scenario) => [scenario.name, sizeOf(scenario, options.mode)]))
  const { mode, at, commit: revision, machine: where, versions, settings } = about
  return { ...named, mode, at, commit: revision, machine: where, versions, settings, sizes }
}
