// One worker: a real process with the built engine and sinks that speak HTTP to the sinks' process.
// It is killed at any moment; what it writes down is only what the sinks cannot see.

import pg from 'pg'
import { declareCatalogue } from './catalogue.mjs'
import { importEngine } from './engine.mjs'
import { openHistory } from './history.mjs'
import { child } from './processes.mjs'
import { makeSinks } from './worker-sinks.mjs'
import { jumpingClock } from './wrong-clock.mjs'

const { config, tell } = child({ stop, alive: () => ({}) })
const { name, incarnation, subscriptions, leaseMs, callMs, concurrency } = config
const fullName = `${name}.${incarnation}`
const history = openHistory(config.folder, fullName)
const clock = config.wrongClock === undefined ? undefined : jumpingClock(config.wrongClock)
const hermod = await importEngine(config.engine)
const outcomes = await importEngine(config.engine, 'sinks/index.js')
const sinkOf = makeSinks({ outcomes, port: config.sinkPort, name: fullName, history })

const pool = new pg.Pool({
  connectionString: config.url,
  max: config.poolMax,
  connectionTimeoutMillis: 5_000,
  application_name: fullName,
})
pool.on('error', () => {})

const outbox = hermod.createOutbox({ pool, listener: listener(), ...(clock && { clock }) })
for (const sub of subscriptions) {
  if (sub.table) await declareCatalogue(hermod, outbox, { ...config, pool, sub })
  else outbox.subscribe(sub.name, { ...policy(sub), sink: sinkOf(sub) })
}
const worker = await started()
watchPauses()
process.once('SIGTERM', () => stop().finally(() => process.exit(0)))
tell({ ready: true })

/** The database may be away at this very moment. */
async function started() {
  for (let attempt = 1; ; attempt++) {
    try {
      return await outbox.start({ concurrency, leaseMs, name: fullName })
    } catch (error) {
      history.write({ k: 'some', name: 'error', during: 'start', says: String(error) })
      if (attempt === 100) throw error
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}

function policy({ order, coalesce, aggregates, lanes, batch }) {
  const given = { order, coalesce, aggregates, lanes, batch }
  const known = Object.entries(given).filter(([, value]) => value !== undefined)
  const retry = { baseMs: 100, capMs: 1_000, attemptsMax: 20 }
  return { ...Object.fromEntries(known), revision: 1, types: ['*'], from: 'beginning', callMs, retry }
}

/** What only the engine sees; it explains a red run and is no part of the judgement. */
function listener() {
  const note = (what) => (event) => history.write({ k: 'some', name: what, who: fullName, ...plain(event) })
  return {
    leaseLost: note('lease-lost'),
    breaker: note('breaker'),
    retry: note('retry'),
    warning: note('warning'),
    error: ({ during, subscription, error }) =>
      history.write({ k: 'some', name: 'error', who: fullName, during, subscription, says: String(error) }),
  }
}

function plain(event) {
  return JSON.parse(JSON.stringify(event, (_, v) => (typeof v === 'bigint' ? String(v) : v)))
}

/** On a busy machine a process may stand still longer than its lease: an interruption as well. */
function watchPauses() {
  let last = performance.now()
  setInterval(() => {
    const now = performance.now()
    if (now - last > leaseMs / 2) {
      history.write({ k: 'pause', who: fullName, ms: Math.round(now - last) })
    }
    last = now
  }, 50)
}

async function stop() {
  await worker.stop()
  await pool.end()
  history.close()
}
