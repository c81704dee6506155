// The engine alone: an embedded PostgreSQL, a producer, a worker with two subscriptions, and one line
// of what flows. Ctrl-C ends all of it. Run it with `node examples/demo/main.mjs` after `npm run build`.

import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import pg from 'pg'
import { createOutbox, migrate } from '../../packages/hermod/dist/index.js'
import { version } from '../../packages/hermod/dist/version.js'
import { readArguments } from './arguments.mjs'
import { openDatabase } from './database.mjs'
import { createTables, Producer, readDocuments } from './producer.mjs'
import { Pulse } from './pulse.mjs'
import { Screen } from './screen.mjs'
import { mailSink, searchSink } from './sinks.mjs'

const root = new URL('../../', import.meta.url)
const options = readArguments(process.argv.slice(2))
const screen = new Screen()
const search = searchSink()
const mail = mailSink()
const closers = []
const held = new Set()
let ending

async function main() {
  const startedMs = performance.now()
  screen.say(`Hermod ${version}  starting an embedded PostgreSQL …`)
  const postgres = await timed('database', () => openDatabase(options))
  closers.push(() => (options.ephemeral ? postgres.destroy() : postgres.stop()))
  const pool = new pg.Pool({ connectionString: postgres.url(), max: 10 })
  pool.on('error', () => {})
  closers.push(() => pool.end())
  const { outbox, producer } = await startEngine(pool)
  introduce(postgres, (performance.now() - startedMs) / 1_000)
  listenToKeys()
  const pulse = new Pulse(outbox, () => ({
    in: producer.committed,
    out: search.count + mail.count,
  }))
  await showPulse(pulse)
}

/** What takes longer than a second says so. */
async function timed(what, work) {
  const startedMs = performance.now()
  const result = await work()
  const seconds = (performance.now() - startedMs) / 1_000
  if (seconds > 1) process.stderr.write(`  ${what} … ${seconds.toFixed(1)} s\n`)
  return result
}

async function startEngine(pool) {
  await timed('schema', () => migrate(pool))
  await createTables(pool)
  const outbox = createOutbox({ pool, listener: { breaker: tellBreaker, error: tellError } })
  for (const row of await readDocuments(pool)) search.documents.set(String(row.id), row)
  outbox.subscribe('search', {
    revision: 1,
    types: ['document.updated'],
    sink: search,
    coalesce: 'latest',
    callMs: 5_000,
  })
  outbox.subscribe('mail', { revision: 1, types: ['document.approved'], sink: mail, callMs: 5_000 })
  search.away = options.outage > 0
  // A short lease: after kill -9 the lanes of the dead worker come free in seconds.
  const worker = await outbox.start({ leaseMs: 8_000, stopGraceMs: 1_000 })
  closers.push(() => worker.stop())
  const producer = new Producer(outbox)
  producer.start(options.rate)
  closers.push(() => producer.stop())
  return { outbox, producer }
}

function introduce(postgres, seconds) {
  const folder = relative(process.cwd(), postgres.dataDir)
  const where = folder.startsWith('..') ? postgres.dataDir : `./${folder}`
  const kept = options.ephemeral
    ? `${postgres.dataDir} (will be deleted on exit)`
    : `${where} (kept; start over with: --reset)`
  screen.say(`Hermod ${version}  ready in ${seconds.toFixed(1)} s

  Producer   ${options.rate} transactions per second change rows and emit events; every tenth rolls back
  Worker     two subscriptions: search (newest state wins), mail (every message has a row)
  Database   embedded PostgreSQL ${Number.parseFloat(postgres.version)}, ${postgres.url()}
  Data       ${kept}

  Next   ${nextSteps(postgres.url()).join('\n         ')}
  Stop   Ctrl-C
  For development only: loopback, no password.${nodeHint()}
`)
}

function nodeHint() {
  const { node } = process.versions
  return Number.parseInt(node, 10) < 24 ? ` Node ${node} works, 24 is recommended.` : ''
}

function nextSteps(url) {
  const outage = screen.terminal
    ? 'press o                       search goes away, and comes back'
    : '--outage 5                    search is away for 5 s, nothing is lost'
  const guide = 'docs/guides/first-event.md    the same in your own program'
  const command = statusCommand()
  return [outage, `DATABASE_URL=${url} ${command}`, guide]
}

/** An install that was made before the program existed has no link to it. */
function statusCommand() {
  const linked = existsSync(new URL('node_modules/.bin/hermod', root))
  return linked ? 'npx hermod status' : 'node packages/hermod/bin/hermod.js status'
}

function listenToKeys() {
  screen.onKeys({ o: toggleOutage, '\u0003': () => interrupt(0), q: () => interrupt(0) })
  if (options.outage > 0) setTimeout(() => setAway(false), options.outage * 1_000).unref()
  if (options.outage > 0) screen.say(`search is away for ${options.outage} s`)
}

function toggleOutage() {
  setAway(!search.away)
}

function setAway(away) {
  if (search.away === away) return
  search.away = away
  screen.say(
    away
      ? 'search is away: its backlog waits in the log, nothing is spent, nothing dies. Press o again.'
      : 'search is back: a probe finds it, then the backlog drains.',
  )
}

/** Every failed probe is told; people want to know the first. */
function tellBreaker({ subscription, state, reason }) {
  if (state === 'open' && !held.has(subscription)) screen.say(`${subscription} is held: ${reason}`)
  if (state === 'open') held.add(subscription)
  if (state === 'closed' && held.delete(subscription)) screen.say(`${subscription} answers again`)
}

function tellError({ during, error }) {
  if (ending === undefined) screen.say(`${during}: ${error.message ?? error}`)
}

async function showPulse(pulse) {
  const everyMs = screen.terminal ? 500 : 2_000
  const untilMs = performance.now() + (options.seconds ?? Number.POSITIVE_INFINITY) * 1_000
  while (ending === undefined && performance.now() < untilMs) {
    const restMs = Math.min(everyMs, untilMs - performance.now())
    await new Promise((resolve) => setTimeout(resolve, restMs))
    const line = await pulse.line()
    if (ending === undefined) screen.live(line)
  }
  if (ending === undefined) end(0)
}

/** The first Ctrl-C ends everything in order, the second at once: the database ends with us. */
function interrupt(code) {
  if (ending !== undefined) process.exit(130)
  end(code)
}

function end(code) {
  ending = close().then(() => process.exit(code))
}

async function close() {
  screen.close()
  const startedMs = performance.now()
  for (const closer of closers.reverse()) await closer().catch(tellError)
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1)
  process.stdout.write(`stopped in ${seconds} s: producer, worker, database\n`)
}

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
]) {
  process.on(signal, () => interrupt(code))
}
main().catch((error) => {
  if (ending !== undefined) return
  screen.close()
  process.stderr.write(`\n${error.message ?? error}\n${error.fix ? `${error.fix}\n` : ''}`)
  process.exit(1)
})
