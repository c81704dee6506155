// How long the engine's statements took, from the log of the server: nothing of the client's
// waiting for a core is in these numbers.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { percentiles } from './check.mjs'

const line = /^(\d+) LOG: {2}duration: ([\d.]+) ms {2}(parse|bind|execute) [^:]*: (.*)$/
const statements = {
  claim: /\boutbox\.claim\(/,
  read: /\boutbox\.read\(/,
  settle: /\boutbox\.settle\(/,
}

/** Parse, bind and execute of one statement belong together; they follow each other in a backend. */
export function statementTimes(dataDir) {
  const found = Object.fromEntries(Object.keys(statements).map((name) => [name, []]))
  const pending = new Map()
  const text = readFileSync(join(dataDir, 'postgres.log'), 'utf8')
  // A statement of several lines continues with a tab.
  for (const entry of text.replaceAll('\n\t', ' ').split('\n')) {
    const [, pid, ms, step, statement] = line.exec(entry) ?? []
    if (pid === undefined) continue
    const sum = (step === 'parse' ? 0 : (pending.get(pid) ?? 0)) + Number(ms)
    pending.set(pid, step === 'execute' ? 0 : sum)
    if (step === 'execute') note(found, statement, sum)
  }
  return Object.fromEntries(Object.entries(found).map(([name, list]) => [name, summary(list)]))
}

function note(found, statement, ms) {
  for (const [name, pattern] of Object.entries(statements)) {
    if (pattern.test(statement)) found[name].push(ms)
  }
}

function summary(list) {
  const { p50, p99, max } = percentiles(list)
  const rounded = (ms) => Math.round(ms * 100) / 100
  return { n: list.length, p50: rounded(p50), p99: rounded(p99), max: rounded(max) }
}
