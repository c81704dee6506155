// What every example must show: a commit delivers, a rollback delivers nothing, many events go in
// one call, and an emit outside a transaction is refused.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { inspect } from 'node:util'
import { createOutbox, migrate } from 'hermod'
import { memorySink } from 'hermod/testing'
import pg from 'pg'

const tables = `
  create table orders (id text primary key, item text not null);
  create table stock (item text primary key, amount int not null check (amount >= 0));
  insert into stock values ('lamp', 1000), ('chair', 0)`

const batchSize = 100
const waitMs = 10_000

/** A database of its own with the two tables, an outbox, and a worker that serves it. */
export async function openShop(serverUrl) {
  const name = `hermod_clients_${randomBytes(4).toString('hex')}`
  await onServer(serverUrl, `create database ${name}`)
  const url = withDatabase(serverUrl, name)
  const pool = new pg.Pool({ connectionString: url })
  await pool.query(tables)
  await migrate(pool)
  const outbox = createOutbox({ pool })
  const arrivals = new EventEmitter()
  const sink = memorySink({ answer: () => void arrivals.emit('event') })
  outbox.subscribe('orders', { revision: 1, types: ['order.*'], sink })
  const worker = await outbox.start()
  const close = async () => {
    await worker.stop()
    await pool.end()
    await drop(serverUrl, name)
  }
  return { url, pool, outbox, sink, arrivals, close }
}

function withDatabase(serverUrl, name) {
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

async function onServer(connectionString, statement) {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query(statement).finally(() => client.end())
}

/** Not by force: a library that leaves a connection open should be noticed. */
async function drop(serverUrl, name) {
  const deadlineMs = performance.now() + waitMs
  for (;;) {
    try {
      return await onServer(serverUrl, `drop database ${name}`)
    } catch (error) {
      if (error.code !== '55006' || performance.now() > deadlineMs) throw error
      await pause(20) // A backend goes a moment after its connection was closed.
    }
  }
}

/** Tells the story with one library; resolves with what it saw. */
export async function tell(shop, library, example) {
  const db = await example.connect(shop.url)
  try {
    const rolledBack = await failsToPlace(shop, library, example, db)
    const placed = await places(shop, library, example, db)
    const imported = await imports(shop, library, example, db)
    await reportsRefusals(shop, library, example, db)
    const outside = await refusesOutside(shop, db)
    const ghosts = eventsOf(shop, rolledBack).length
    assert.deepEqual({ placed, ghosts, imported }, { placed: 1, ghosts: 0, imported: batchSize })
    return `commit delivered ${placed} · rollback delivered ${ghosts} · batch ${imported} · ${outside}`
  } finally {
    await example.close(db)
  }
}

async function places(shop, library, { placeOrder }, db) {
  const order = { id: `${library}-placed`, item: 'lamp' }
  await placeOrder(db, shop.outbox, order)
  const [event, ...more] = await delivered(shop, order.id, 1)
  assert.equal(event.type, 'order.placed')
  assert.deepEqual({ ...event.payload }, order)
  assert.equal(await count(shop, 'select from orders where id = $1', order.id), 1)
  return 1 + more.length
}

/** Chairs are sold out: the check constraint fails after the emit, and takes both back. */
async function failsToPlace(shop, library, { placeOrder }, db) {
  const order = { id: `${library}-sold-out`, item: 'chair' }
  const soldOut = (error) => inspect(error, { depth: 5 }).includes('stock_amount_check')
  await assert.rejects(placeOrder(db, shop.outbox, order), soldOut)
  assert.equal(await count(shop, 'select from orders where id = $1', order.id), 0)
  assert.equal(await count(shop, 'select from outbox.event where aggregate_id = $1', order.id), 0)
  return order.id
}

async function imports(shop, library, { importOrders }, db) {
  const ids = Array.from({ length: batchSize }, (_, n) => `${library}-batch-${n}`)
  const orders = ids.map((id) => ({ id, item: 'lamp' }))
  await importOrders(db, shop.outbox, orders)
  const events = await delivered(shop, `${library}-batch-`, batchSize)
  assert.deepEqual(events.map((event) => event.aggregateId).sort(), ids.sort())
  return events.length
}

/** What the database refuses arrives with its code, however the library wraps errors. */
async function reportsRefusals({ outbox }, library, { placeOrder }, db) {
  const order = { id: `${library}-twice`, item: 'lamp' }
  const sameKey = {
    async emit(tx, event) {
      await outbox.lock(tx, [event.aggregate])
      await outbox.emit(tx, { ...event, key: order.id })
      await outbox.emit(tx, { ...event, key: order.id, payload: 'another' })
    },
  }
  await assert.rejects(placeOrder(db, sameKey, order), { code: 'HMD_IDEMPOTENCY_CONFLICT' })
}

async function refusesOutside({ outbox }, db) {
  const event = { type: 'order.placed', aggregate: ['order', 'outside'], payload: {} }
  await assert.rejects(outbox.emit(db, event), { code: 'HMD_EMIT_OUTSIDE_TRANSACTION' })
  return 'outside refused'
}

/** What arrived of these orders, once it is this much. */
async function delivered(shop, id, wanted) {
  const signal = AbortSignal.timeout(waitMs)
  while (eventsOf(shop, id).length < wanted) await once(shop.arrivals, 'event', { signal })
  return eventsOf(shop, id)
}

function eventsOf({ sink }, id) {
  return sink.accepted.filter((event) => event.aggregateId.startsWith(id))
}

async function count({ pool }, query, id) {
  return (await pool.query(query, [id])).rowCount
}
