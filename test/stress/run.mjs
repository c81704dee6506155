// `npm run stress`: real processes, kill -9, and a checker that accounts for every event. Progress
// goes to stderr; the last line of stdout is one JSON object. Exit 0: every invariant held, 1: one
// broke, 2: the harness could not run.

import { readOptions } from './options.mjs'
import { killAll } from './processes.mjs'

const scenarioFiles = {
  chaos: () => import('./scenarios/chaos.mjs').then(({ chaos }) => chaos),
  'open-transaction': () => import('./scenarios/open-transaction.mjs').then(({ openTransaction }) => openTransaction),
  refused: () => import('./scenarios/outage.mjs').then(({ outage }) => outage),
  throttled: () => import('./scenarios/outage.mjs').then(({ outage }) => outage),
  pgbouncer: () => import('./scenarios/pgbouncer.mjs').then(({ pgbouncer }) => pgbouncer),
  restart: () => import('./scenarios/restart.mjs').then(({ restart }) => restart),
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    console.error(`${signal}: ending`)
    killAll().finally(() => process.exit(130))
  })
}

try {
  const options = readOptions(process.argv.slice(2))
  const play = await scenarioFiles[options.scenario]()
  const result = await play(options)
  console.log(JSON.stringify(result))
  process.exitCode = result.ok ? 0 : 1
} catch (error) {
  console.error(error)
  process.exitCode = 2
}
