// What can be asked of the harness on its command line: names, defaults, bounds.

import { parseArgs } from 'node:util'
import { faultNames } from './plan.mjs'

export const scenarios = ['chaos', 'backlog', 'open-transaction', 'refused', 'throttled', 'pgbouncer']

/** Batch, loops and call deadline of every worker; the bound on duplicates is made from them. */
export const batchCount = 100
export const concurrency = 2
export const callMs = 2_000

const flags = {
  scenario: { type: 'string', default: 'chaos' },
  seconds: { type: 'string', default: '60' },
  seed: { type: 'string' },
  repro: { type: 'string' },
  seeds: { type: 'string' },
  faults: { type: 'string' },
  without: { type: 'string' },
  rate: { type: 'string' },
  workers: { type: 'string', default: '3' },
  writers: { type: 'string', default: '3' },
  lease: { type: 'string', default: '3000' },
  ablate: { type: 'string' },
  engine: { type: 'string' },
  json: { type: 'boolean', default: false },
  keep: { type: 'boolean', default: false },
}

const rates = { chaos: 150, backlog: 300, 'open-transaction': 300, refused: 500, throttled: 500, pgbouncer: 150 }

/** Throws with a sentence for people when something is wrong. */
export function readOptions(args) {
  const { values } = parseArgs({ args, options: flags, allowPositionals: false })
  const { scenario, ablate, engine, json, keep } = values
  if (!scenarios.includes(scenario)) {
    throw new Error(`--scenario must be one of ${scenarios.join(', ')} (got ${scenario})`)
  }
  const given = values.repro === undefined ? values : { ...values, seed: values.repro }
  const faulty = scenario === 'chaos' || scenario === 'pgbouncer'
  return {
    scenario,
    ablate,
    engine,
    json,
    keep,
    // Of many seeds nothing stays: their red runs are told in words.
    keepRed: given.seeds === undefined && ablate !== 'all',
    seconds: number(given, 'seconds', 5, 86_400),
    seed: given.seed === undefined ? randomSeed() : number(given, 'seed', 0, 2 ** 31),
    seeds: given.seeds === undefined ? undefined : number(given, 'seeds', 1, 10_000),
    faults: faulty ? wantedFaults(given) : [],
    eachOnce: given.faults !== undefined,
    rate: given.rate === undefined ? rates[scenario] : number(given, 'rate', 1, 100_000),
    workers: number(given, 'workers', 1, 32),
    writers: number(given, 'writers', 1, 16),
    leaseMs: number(given, 'lease', callMs + 500, 600_000),
  }
}

/**
 * `--faults none` is a run without faults, `--faults all` one with every kind at least once; `--without a,b`
 * leaves some out.
 */
function wantedFaults({ faults, without }) {
  if (faults === 'none') return []
  const wanted = faults === undefined || faults === 'all' ? faultNames : listed('faults', faults)
  const left = without === undefined ? [] : listed('without', without)
  return wanted.filter((name) => !left.includes(name))
}

/** `db-*` names all that begin so. */
function listed(flag, text) {
  return text.split(',').flatMap((name) => {
    const found = faultNames.filter(
      (known) => known === name || (name.endsWith('*') && known.startsWith(name.slice(0, -1))),
    )
    if (found.length === 0) throw new Error(`--${flag} must name some of ${faultNames.join(', ')} (got ${name})`)
    return found
  })
}

function number(values, name, min, max) {
  const value = Number(values[name])
  if (value >= min && value <= max) return value
  throw new Error(`--${name} must be a number from ${min} to ${max} (got ${values[name]})`)
}

function randomSeed() {
  return Math.floor(Math.random() * 2 ** 31)
}
