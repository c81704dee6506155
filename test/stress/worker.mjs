// One worker: a real process with the built engine and sinks that speak HTTP to the sink process.
// It is killed at any moment; what it writes down is only what the sinks cannot see.

import { Agent, request as httpRequest } from 'node:http'
import pg from 'pg'
import { importEngine } from './engine.mjs'
import { openHistory } from './history.mjs'
import { child } from './processes.mjs'

const { config, tell } = child({ stop })
const { name, incarnation, subscriptions, sinkPort, leaseMs, callMs, concurrency } = config
const history = openHistory(config.folder, name)
const { createOutbox } = await importEngine(config.engine)
const { delivered, rejected, retry, outcomeOfStatus } = await importEngine(config.engine, 'sinks/index.js')
const agent = new Agent({ keepAlive: true, maxSockets: 64 })

const pool = new pg.Pool({
  connectionString: config.url,
  max: config.poolMax,
  application_name: `${name}.${incarnation}`,
})
pool.on('error', () => {})

const outbox = createOutbox({ pool, listener: listener() })
for (const subscription of subscriptions) outbox.subscribe(subscription.name, options(subscription))
const worker = await started()
watchPauses()
tell({ ready: true })

/** The database may be away at this very moment. */
async function started() {
  for (let attempt = 1; ; attempt++) {
    try {
      return await outbox.start({ concurrency, leaseMs, name: `${name}.${incarnation}` })
    } catch (error) {
      if (attempt === 100) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}

function options({ name: sub, keepsOrder, ...policy }) {
  return {
    ...policy,
    revision: 1,
    types: ['*'],
    from: 'beginning',
    callMs,
    retry: { baseMs: 100, capMs: 1_000, attemptsMax: 20 },
    sink: {
      name: sub,
      capabilities: { keepsOrder, perItemResult: true },
      deliver: (events, { signal }) => post(sub, events, signal),
    },
  }
}

async function post(sub, events, signal) {
  const from = Date.now()
  try {
    const { status, body } = await call(sub, events, signal)
    if (status !== 200) return events.map(() => outcomeOfStatus(status, { items: events.length }))
    return JSON.parse(body).map((word) => outcomes[word]())
  } catch (error) {
    history.write({ k: 'callfail', sub, who: name, from, to: Date.now(), code: error.code })
    throw error
  }
}

const outcomes = {
  ok: () => delivered(),
  retry: () => retry({ code: 'trouble', message: 'not now' }),
  rejected: () => rejected({ code: 'poison', message: 'never' }),
}

function call(sub, events, signal) {
  const body = JSON.stringify(
    events.map((event) => ({
      pos: String(event.position),
      aggregate: `${event.aggregateType}/${event.aggregateId}`,
      payload: event.payload,
    })),
  )
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'x-worker': name }
    const to = { host: '127.0.0.1', port: sinkPort, path: `/${sub}`, method: 'POST' }
    const request = httpRequest({ ...to, headers, agent, signal }, (response) => {
      const chunks = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode, body: Buffer.concat(chunks).toString() }))
    })
    request.on('error', reject)
    request.end(body)
  })
}

/** What only the engine sees; it explains a red run and is no part of the judgement. */
function listener() {
  const note = (what) => (event) => history.write({ k: 'some', name: what, ...plain(event) })
  return {
    leaseLost: note('lease-lost'),
    breaker: note('breaker'),
    retry: note('retry'),
    warning: note('warning'),
    error: ({ during, subscription, error }) =>
      history.write({ k: 'some', name: 'error', during, subscription, says: String(error) }),
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
      history.write({ k: 'fault', name: 'pause', who: name, ms: Math.round(now - last) })
    }
    last = now
  }, 50)
}

async function stop() {
  await worker.stop()
  await pool.end()
  history.close()
}
