// What can be asked of the harness on its command line: names, defaults, bounds.

import { parseArgs } from 'node:util'

export const scenarios = ['chaos', 'open-transaction', 'refused', 'throttled', 'pgbouncer', 'restart']

/** Batch, loops and lease of every worker; the bound on duplicates is made from them. */
export const batchCount = 100
export const concurrency = 2
export const callMs = 2_000

const flags = {
  scenario: { type: 'string', default: 'chaos' },
  seconds: { type: 'string', default: '60' },
  seed: { type: 'string' },
  kills: { type: 'string' },
  rate: { type: 'string' },
  workers: { type: 'string', default: '3' },
  lease: { type: 'string', default: '3000' },
  trouble: { type: 'string', default: '0' },
  poison: { type: 'string', default: '0' },
  ablate: { type: 'string' },
  engine: { type: 'string' },
  json: { type: 'boolean', default: false },
  keep: { type: 'boolean', default: false },
}

const rates = { 'open-transaction': 300, refused: 500, throttled: 500 }

/** Throws with a sentence for people when something is wrong. */
export function readOptions(args) {
  const { values } = parseArgs({ args, options: flags, allowPositionals: false })
  const { scenario, ablate, engine, json, keep } = values
  if (!scenarios.includes(scenario)) {
    throw new Error(`--scenario must be one of ${scenarios.join(', ')} (got ${scenario})`)
  }
  const seconds = number(values, 'seconds', 5, 86_400)
  const seed = values.seed === undefined ? randomSeed() : number(values, 'seed', 0, 2 ** 31)
  const killing = scenario === 'chaos' || scenario === 'pgbouncer'
  const kills =
    values.kills === undefined
      ? killing
        ? Math.max(2, Math.floor(seconds * 0.4))
        : 0
      : number(values, 'kills', 0, 100_000)
  const rate = values.rate === undefined ? (rates[scenario] ?? 400) : number(values, 'rate', 1, 100_000)
  return {
    scenario,
    seconds,
    seed,
    kills,
    rate,
    ablate,
    engine,
    json,
    keep,
    workers: number(values, 'workers', 1, 32),
    leaseMs: number(values, 'lease', callMs + 500, 600_000),
    trouble: number(values, 'trouble', 0, 1),
    poison: number(values, 'poison', 0, 1),
  }
}

function number(values, name, min, max) {
  const value = Number(values[name])
  if (value >= min && value <= max) return value
  throw new Error(`--${name} must be a number from ${min} to ${max} (got ${values[name]})`)
}

function randomSeed() {
  return Math.floor(Math.random() * 2 ** 31)
}
