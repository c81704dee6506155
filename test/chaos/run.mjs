// `npm run chaos`: real processes, seeded faults, and a checker that accounts for every event.
// Progress goes to stderr; the last line of stdout is one JSON object. Exit 0: every invariant held,
// 1: one broke, 2: the harness could not run.

import { ablateAll } from './ablate-all.mjs'
import { readOptions } from './options.mjs'
import { killAll } from './processes.mjs'
import { manySeeds, writeReport } from './report.mjs'

const scenarioFiles = {
  chaos: () => import('./scenarios/chaos.mjs').then(({ chaos }) => chaos),
  backlog: () => import('./scenarios/backlog.mjs').then(({ backlog }) => backlog),
  'open-transaction': () => import('./scenarios/open-transaction.mjs').then(({ openTransaction }) => openTransaction),
  refused: () => import('./scenarios/outage.mjs').then(({ outage }) => outage),
  throttled: () => import('./scenarios/outage.mjs').then(({ outage }) => outage),
  pgbouncer: () => import('./scenarios/pgbouncer.mjs').then(({ pgbouncer }) => pgbouncer),
}

let ending = false
for (const signal of ['SIGINT', 'SIGTERM']) {
  // Not `once`: the embedded PostgreSQL would see nobody who cleans up, and end this process at once.
  process.on(signal, () => {
    if (ending) return
    ending = true
    console.error(`${signal}: ending`)
    killAll().finally(() => process.exit(130))
  })
}

try {
  const options = readOptions(process.argv.slice(2))
  const play = await scenarioFiles[options.scenario]()
  const result = await wanted(options, play)
  console.log(JSON.stringify(result))
  process.exitCode = result.ok ? 0 : 1
} catch (error) {
  console.error(error)
  process.exitCode = 2
}

async function wanted(options, play) {
  if (options.ablate === 'all') return ablateAll(options, play)
  if (options.seeds !== undefined) return manySeeds(options, play)
  return writeReport(options, await play(options))
}
