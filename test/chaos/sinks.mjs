// The outside world as a process of its own: an HTTP server that writes down every accepted event
// before it answers. Its log is the judge. It can be down, throttle, fail single events, answer too
// late, cut a call it has accepted, and hold a call so that its worker is killed meanwhile.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { openHistory } from './history.mjs'
import { child } from './processes.mjs'
import { between, pick, seeded } from './random.mjs'
import { Tasks } from './tasks.mjs'

const holdMs = 5_000
const landMaxMs = 12_000
const wholeEveryMs = 4_000
const { config, tell } = child({ arm, disarm, land, letGo, outage, quiet, stop })
const history = openHistory(config.folder, 'sinks')
const random = seeded(config.seed)
const subs = new Map(config.subscriptions.map((sub) => [sub.name, sub]))
const tasks = new Tasks({ history, random, accept, note, late: config.lateTasks })
const armed = new Map()
const waiting = new Map()
const landings = new Map()
const held = new Map()
let { trouble, poison } = config
let server = serve()
let port = 0
let calls = 0
let down
let closing = false
let isQuiet = false

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

/** The next call of this worker, or with this aggregate, is held until its worker is gone. */
function arm({ target, mode, sub }) {
  armed.set(target, { target, mode, sub })
}

function disarm({ target }) {
  armed.delete(target)
}

/** `refused`: nobody listens. `hang`, `503`, `throttled`: every call meets it. */
async function outage({ kind, on }) {
  history.write({ k: 'outage', name: kind, on })
  if (kind !== 'refused') down = on ? kind : undefined
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

/** The faults are over: what is left is to be delivered. Poison stays poison. */
function quiet() {
  isQuiet = true
  trouble = 0
  tasks.late = false
}

function stop() {
  history.close()
}

async function handle(request, response) {
  const startedMs = Date.now()
  const body = await read(request)
  const by = request.headers['x-worker']
  const cid = request.headers['x-call']
  const call = { id: ++calls, by, cid, worker: by.split('.')[0], body, response, startedMs }
  const [, name, what = 'deliver'] = request.url.split('/')
  call.sub = subs.get(name)
  if (down !== undefined) return meetOutage(call)
  if (what === 'poll') return answer(response, tasks.poll(call))
  await latency(call.sub)
  const hold = armed.get(call.worker) ?? call.body.map(({ aggregate }) => armed.get(aggregate)).find(Boolean)
  if (hold !== undefined && (hold.sub === 'any' || hold.sub === name)) {
    armed.delete(hold.target)
    return holdCall(call, hold)
  }
  if (random() < trouble) return inTrouble(call)
  if (!response.destroyed) answer(response, take(call))
}

async function read(request) {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString())
}

/** Mostly nothing, sometimes a few milliseconds, seldom many; or what the destination always takes. */
async function latency({ latencyMs }) {
  if (latencyMs !== undefined && !isQuiet) return pause(latencyMs)
  const dice = random()
  if (dice < 0.7) return
  await pause(dice < 0.98 ? between(random, 1, 4) : between(random, 10, 40))
}

/** What a call asks for: the events, or a task that will take them later. */
function take(call, failing = -1) {
  if (call.sub.tasks) return { task: tasks.add(call) }
  const outcomes = judge(call.body, failing)
  accept(
    call,
    call.body.filter((_, index) => outcomes[index] === 'ok'),
  )
  note(
    call,
    'item',
    call.body.filter((_, index) => outcomes[index] === 'retry'),
  )
  note(
    call,
    'poison',
    call.body.filter((_, index) => outcomes[index] === 'rejected'),
  )
  return outcomes
}

/** A call that is held is answered now. */
function letGo({ target }) {
  held.get(target)?.()
}

/** The old write lands when the conductor lets it, or just after something newer came: true. */
async function beatenBy(call, target) {
  const newer = newerThan(call, target)
  const landing = new Promise((resolve) => landings.set(call.worker, () => resolve(false)))
  return Promise.race([newer, landing, pause(landMaxMs, false)])
}

function land({ worker }) {
  landings.get(worker)?.()
}

/** Resolves when this destination has accepted something newer of this aggregate than the call holds. */
function newerThan({ sub, body }, target) {
  const { payload } = body.findLast(({ aggregate }) => aggregate === target)
  return new Promise((resolve) => waiting.set(`${sub.name}\n${target}`, { v: payload.v, resolve }))
}

function note({ sub }, k, events) {
  history.writeAll(events.map(({ payload: { key } }) => ({ k, sub: sub.name, key })))
}

/** Writes down what is accepted, in one write. */
function accept({ sub, id, by, cid }, events, more = {}) {
  const entry = ({ pos, payload: { key, v } }) => ({
    k: 'recv',
    sub: sub.name,
    key,
    v,
    pos,
    call: id,
    by,
    cid,
    ...more,
  })
  history.writeAll(events.map(entry))
  for (const { aggregate, payload } of events) {
    const old = waiting.get(`${sub.name}\n${aggregate}`)
    if (old !== undefined && payload.v > old.v) old.resolve(true)
  }
}

/**
 * One event of a call may fail for now, and with it, as an ordered sink must, the later ones of its
 * aggregate. Poisoned keys fail for ever.
 */
function judge(events, failing) {
  const failed = new Set()
  return events.map(({ aggregate, payload: { key } }, index) => {
    if (poisoned(key)) return 'rejected'
    if (index !== failing && !failed.has(aggregate)) return 'ok'
    failed.add(aggregate)
    return 'retry'
  })
}

function poisoned(key) {
  if (poison === 0) return false
  let hash = 0
  for (const letter of key) hash = (Math.imul(hash, 31) + letter.charCodeAt(0)) >>> 0
  return seeded(hash)() < poison
}

tasks.poisoned = poisoned

function answer(response, words) {
  response.setHeader('content-type', 'application/json')
  if (closing) response.setHeader('connection', 'close')
  response.end(JSON.stringify(words))
}

function status(response, code, headers = {}) {
  response.writeHead(code, headers)
  response.end()
}

const wholes = ['500', '429', 'slow', 'cut', 'late']
const wholeAtMs = new Map()

function inTrouble(call) {
  const name = troubleFor(call)
  history.write({ k: 'trouble', name, sub: call.sub.name, who: call.by, cid: call.cid })
  return troubles[name](call)
}

/**
 * Half of them are single events. A destination that fails as a whole is held by a breaker for a while:
 * without a pause between two of them, a destination with many small calls would be held all the time,
 * and the run would measure that.
 */
function troubleFor({ sub }) {
  const chosen = random() < 0.5 ? 'item' : pick(random, wholes)
  const nowMs = performance.now()
  if (chosen === 'item' || nowMs < (wholeAtMs.get(sub.name) ?? 0)) return 'item'
  wholeAtMs.set(sub.name, nowMs + wholeEveryMs)
  return chosen
}

const troubles = {
  item: (call) => answer(call.response, take(call, between(random, 0, call.body.length - 1))),
  500: (call) => status(call.response, 500),
  429: (call) => status(call.response, 429, { 'retry-after': '1' }),
  async slow(call) {
    await pause(between(random, 300, 1_500))
    if (!call.response.destroyed) answer(call.response, take(call))
  },
  /** Accepted, and the caller never hears of it. */
  cut(call) {
    take(call)
    lostAnswer(call, 'cut')
    call.response.destroy()
  },
  /** Accepted, and answered when the caller has given up. */
  async late(call) {
    const words = take(call)
    lostAnswer(call, 'late')
    await pause(config.callMs + between(random, 200, 800))
    if (!call.response.destroyed) answer(call.response, words)
  },
}

function lostAnswer(call, name) {
  history.write({ k: 'lost-answer', name, sub: call.sub.name, who: call.worker, call: call.id })
}

/**
 * accept: written, not answered. late: written when the caller is gone, as by a server that goes on
 * working. later: written when another worker has taken over. drop: never written.
 */
async function holdCall(call, { mode, target }) {
  const { response, worker, id } = call
  const words = mode === 'accept' ? take(call) : undefined
  const gone = once(response, 'close').then(() => 'gone')
  const free = new Promise((resolve) => held.set(target, () => resolve('waited')))
  tell({ held: worker, target, call: id })
  const end = await Promise.race([gone, free, pause(holdMs, 'waited', { ref: false })])
  if (end === 'waited') return answer(response, words ?? take(call))
  history.write({ k: 'cutcall', who: worker, sub: call.sub.name, call: id, mode })
  tell({ cut: worker, call: id })
  const beaten = mode === 'later' && (await beatenBy(call, target))
  if (beaten) history.write({ k: 'some', name: 'old-write-last', sub: call.sub.name, call: id })
  if (mode === 'late' || mode === 'later') take(call)
}

/** 429 is slow enough that two calls at once are seen as two. A call that hangs is not accepted. */
async function meetOutage({ sub, by, worker, response, startedMs }) {
  if (down === 'hang') return
  await pause(100)
  if (down === 'throttled') status(response, 429, { 'retry-after': '1' })
  else status(response, 503)
  history.write({ k: 'refused', sub: sub.name, who: worker, by, from: startedMs, to: Date.now() })
}
