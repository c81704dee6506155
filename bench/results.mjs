/**
 * The kept results: one file per mode and scenario, `bench/results/full-drain.json`, each with its
 * commit, machine, versions, settings and sizes, so that one scenario can be measured again alone.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = new URL('results/', import.meta.url)
const formatter = new URL('../node_modules/@biomejs/biome/bin/biome', import.meta.url)
const fileOf = (mode, name) => new URL(`${mode}-${name}.json`, folder)

export function keep(mode, name, result) {
  mkdirSync(folder, { recursive: true })
  const file = fileURLToPath(fileOf(mode, name))
  writeFileSync(file, `${JSON.stringify(result, shortened, 2)}\n`)
  // The form the repository's check asks for.
  spawnSync(process.execPath, [fileURLToPath(formatter), 'format', '--write', file])
}

/** Four digits say all there is to say. */
function shortened(_key, value) {
  if (typeof value !== 'number' || Number.isInteger(value)) return value
  return Math.abs(value) >= 10_000 ? Math.round(value) : Number(value.toPrecision(4))
}

/** The best that is kept of a scenario: a full run, else a quick one. */
export function keptResult(name, modes = ['long', 'full', 'quick']) {
  for (const mode of modes) {
    const file = fileOf(mode, name)
    if (existsSync(file)) return { mode, ...JSON.parse(readFileSync(file, 'utf8')) }
  }
  return undefined
}

const tuned = new URL('tuned.json', folder)

/** What `tune.mjs` found to serve each system best on this kind of machine. */
export function tunedSettings() {
  return existsSync(tuned) ? JSON.parse(readFileSync(tuned, 'utf8')).settings : {}
}

export function keepTuned(result) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(tuned, `${JSON.stringify(result, shortened, 2)}\n`)
  spawnSync(process.execPath, [fileURLToPath(formatter), 'format', '--write', fileURLToPath(tuned)])
}
