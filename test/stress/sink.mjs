// The outside world as a process of its own: an HTTP server that writes down every accepted event
// before it answers. Its log is the judge. It can hold a call of one worker so that the worker is
// killed while it waits, refuse connections, and answer 429.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { openHistory } from './history.mjs'
import { child } from './processes.mjs'
import { between, seeded } from './random.mjs'

const holdMs = 5_000
const { config, tell } = child({ arm, disarm, outage, stop })
const history = openHistory(config.folder, 'sink')
const random = seeded(config.seed)
const armed = new Map()
let server = serve()
let port = 0
let calls = 0
let throttled = false
let closing = false

await listen()
tell({ port })

function serve() {
  const made = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  made.keepAliveTimeout = 60_000
  return made
}

async function listen() {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  port = server.address().port
}

/** The next call of this worker is held until the worker is gone. */
function arm({ worker, mode }) {
  armed.set(worker, mode)
}

async function outage({ kind, on }) {
  history.write({ k: 'fault', name: kind, on })
  if (kind === 'throttled') throttled = on
  else if (on) await close()
  else {
    server = serve()
    await listen()
  }
}

/** Calls under way are answered: an outage alone repeats nothing. */
async function close() {
  const closed = once(server, 'close')
  closing = true
  server.close()
  const idle = setInterval(() => server.closeIdleConnections(), 5)
  await closed
  clearInterval(idle)
  closing = false
}

function disarm({ worker }) {
  armed.delete(worker)
}

function stop() {
  history.close()
}

async function handle(request, response) {
  const call = ++calls
  const startedMs = Date.now()
  const body = await read(request)
  const worker = request.headers['x-worker']
  const sub = request.url.slice(1)
  if (throttled) return refuse(response, sub, worker, startedMs)
  await latency()
  const mode = armed.get(worker)
  armed.delete(worker)
  if (mode !== undefined) return holdCall(response, sub, worker, body, call, mode)
  if (!response.destroyed) answer(response, accept(sub, worker, body, call))
}

async function read(request) {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString())
}

/** Mostly nothing, sometimes a few milliseconds, seldom many. */
async function latency() {
  const dice = random()
  if (dice < 0.7) return
  await pause(dice < 0.98 ? between(random, 1, 4) : between(random, 10, 40))
}

/** Writes down what is accepted; a refused event is not written and says so. */
function accept(sub, by, events, call) {
  const outcomes = judge(events)
  const accepted = events.filter((_, index) => outcomes[index] === 'ok')
  history.writeAll(accepted.map(({ pos, payload: { key, v } }) => ({ k: 'recv', sub, key, v, pos, call, by })))
  return outcomes
}

/**
 * A little trouble: one event of a call fails for now, and with it, as an ordered sink must, the
 * later ones of its aggregate. Poisoned keys fail for ever.
 */
function judge(events) {
  const failing = random() < config.trouble ? between(random, 0, events.length - 1) : -1
  const failed = new Set()
  return events.map(({ aggregate, payload: { key } }, index) => {
    if (poisoned(key)) return 'rejected'
    if (index !== failing && !failed.has(aggregate)) return 'ok'
    failed.add(aggregate)
    return 'retry'
  })
}

function poisoned(key) {
  if (config.poison === 0) return false
  let hash = 0
  for (const letter of key) hash = (Math.imul(hash, 31) + letter.charCodeAt(0)) >>> 0
  return seeded(hash)() < config.poison
}

function answer(response, outcomes) {
  response.setHeader('content-type', 'application/json')
  if (closing) response.setHeader('connection', 'close')
  response.end(JSON.stringify(outcomes))
}

/**
 * accept: written, not answered. late: written only after the caller is gone, as by a server that
 * goes on working. drop: never written.
 */
async function holdCall(response, sub, worker, body, call, mode) {
  const outcomes = mode === 'accept' ? accept(sub, worker, body, call) : undefined
  const gone = once(response, 'close').then(() => 'gone')
  tell({ held: worker, call, mode })
  const end = await Promise.race([gone, pause(holdMs, 'waited', { ref: false })])
  if (end === 'waited') return answer(response, outcomes ?? accept(sub, worker, body, call))
  if (mode === 'late') accept(sub, worker, body, call)
  history.write({ k: 'cutcall', who: worker, call, mode })
  tell({ cut: worker, call })
}

/** Slow enough that two calls at once are seen as two. */
async function refuse(response, sub, worker, startedMs) {
  await pause(100)
  response.statusCode = 429
  response.end()
  history.write({ k: 'refused', sub, who: worker, from: startedMs, to: Date.now() })
}
