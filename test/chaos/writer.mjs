// The application: transactions that change rows and emit events, some of them rolled back, cut
// into savepoints, prepared or huge. It writes down what it is about to commit, then the answer.

import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { importEngine } from './engine.mjs'
import { openHistory } from './history.mjs'
import { child } from './processes.mjs'
import { seeded } from './random.mjs'
import { makePlanner } from './workload.mjs'

const { config, tell } = child({ stop, release, count })
const history = openHistory(config.folder, config.name)
const { createOutbox } = await importEngine(config.engine)
const outbox = createOutbox({ pool: new pg.Pool({ connectionString: config.url, max: 1 }) })
const counts = { emitted: 0 }
let number = 0
let stopping = false
let letGo = () => {}

tell({ ready: true })
const startedMs = performance.now()
const writers = Array.from({ length: config.connections }, (_, index) => writeOn(index))
const holder = config.holdOpen ? holdOpen() : undefined

/** One connection: transaction after transaction, at the common pace, until stopped. */
async function writeOn(index) {
  const plan = makePlanner(seeded(config.seed ^ (index * 7_919 + config.index * 104_729)), config)
  let client
  while (!stopping) {
    if (ahead()) {
      await pause(2)
      continue
    }
    client ??= await connect()
    if (client === undefined) continue
    const tx = `${config.name}.${index}-${++number}`
    const alive = await write(client, tx, plan()).catch((error) => unexpected(error, tx))
    if (!alive) {
      client.end().catch(() => {})
      client = undefined
    }
  }
  await client?.end().catch(() => {})
}

function ahead() {
  return counts.emitted >= ((performance.now() - startedMs) / 1_000) * config.rate
}

async function connect() {
  const client = new pg.Client({ connectionString: config.url, application_name: config.name })
  client.on('error', () => {})
  try {
    await client.connect()
    return client
  } catch {
    client.end().catch(() => {})
    await pause(50)
    return undefined
  }
}

function unexpected(error, tx) {
  history.write({ k: 'writer-error', tx, says: String(error) })
  return false
}

/** False: the connection is of no more use. */
async function write(client, tx, plan) {
  let tried = false
  try {
    const level = plan.repeatable ? 'repeatable read' : 'read committed'
    const setting = plan.async ? '; set local synchronous_commit = off' : ''
    await client.query(`begin isolation level ${level}${setting}`)
    const events = await change(client, tx, plan)
    if (plan.savepoint) await changeAndUndo(client, tx, plan)
    history.write({ k: 'try', tx, ev: events, async: plan.async || undefined })
    tried = true
    await end(client, tx, plan)
    if (plan.end !== 'rollback') counts.emitted += events.length
    return true
  } catch (error) {
    return afterError(client, tx, tried, error)
  }
}

/** Row locks in one order for everybody; `v` is the row's version, so the true order of changes. */
async function change(client, tx, { changes }) {
  const listed = []
  for (const { id, version } of await bump(client, changes, tx)) {
    const { times } = changes.find(({ aggregate }) => aggregate === id)
    for (let v = version - times + 1; v <= version; v++) listed.push([id, v])
  }
  const events = listed.map(([aggregate, v], index) => [`${tx}-${index}`, aggregate, v])
  await outbox.emit(client, events.map(toEvent(tx)))
  return events
}

async function bump(client, changes, tx) {
  const text = `with tx as (insert into chaos.tx (tx, events) select $3, $4 where $3::text is not null)
    select id, version from chaos.change($1, $2)`
  const times = changes.map((change) => change.times)
  const ids = changes.map(({ aggregate }) => aggregate)
  const count = times.reduce((sum, each) => sum + each, 0)
  return (await client.query(text, [ids, times, tx, count])).rows
}

const toEvent =
  (tx) =>
  ([key, aggregate, v]) => ({
    type: 'thing.changed',
    aggregate: aggregate.split('/'),
    payload: { key, tx, v },
  })

/** What happens after a savepoint that is rolled back must never be seen. */
async function changeAndUndo(client, tx, { changes }) {
  const { aggregate } = changes.at(-1)
  await client.query('savepoint undone')
  const [{ version }] = await bump(client, [{ aggregate, times: 1 }], null)
  await outbox.emit(client, toEvent(tx)([`${tx}-undone`, aggregate, version]))
  await client.query('rollback to savepoint undone')
}

async function end(client, tx, plan) {
  if (plan.end === 'rollback') {
    await client.query('rollback')
    history.write({ k: 'fail', tx, why: 'rollback' })
    return
  }
  if (plan.end === 'prepare') await prepared(client, tx, plan)
  else await client.query('commit')
  history.write({ k: 'ack', tx })
}

async function prepared(client, tx, { preparedMs }) {
  await client.query(`prepare transaction '${tx}'`)
  await pause(preparedMs)
  await client.query(`commit prepared '${tx}'`)
}

/** PostgreSQL's own errors roll back; without an answer nobody knows. */
async function afterError(client, tx, tried, error) {
  const answered = typeof error.severity === 'string' && !/^(57P0|08)/.test(error.code)
  if (tried) history.write({ k: answered ? 'fail' : 'cut', tx, why: error.code ?? error.message })
  if (!answered) return false
  if (!/^(40001|40P01)$/.test(error.code)) throw error
  await client.query('rollback')
  return true
}

/** One transaction with an event and a transaction id, open for most of the run. */
async function holdOpen() {
  const client = await connect()
  const tx = `open-${config.name}`
  const released = new Promise((resolve) => {
    letGo = resolve
  })
  try {
    await client.query('begin')
    const events = await change(client, tx, { changes: [{ aggregate: 'row/open', times: 1 }] })
    await released
    history.write({ k: 'try', tx, ev: events })
    await client.query('commit')
    history.write({ k: 'ack', tx })
    counts.emitted += events.length
  } catch (error) {
    unexpected(error, tx)
  }
  await client.end().catch(() => {})
}

function count() {
  return counts
}

/** The open transaction may commit. */
async function release() {
  letGo()
  await holder
}

async function stop() {
  stopping = true
  await release()
  await Promise.all(writers)
  history.close()
  return counts
}
