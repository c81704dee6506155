/**
 * A worker with many subscriptions made at run time, one lane each: subscription n hears `t<n>.*`. Says what they cost
 * while nothing happens, then delivers until it is told to stop and says when each event was acknowledged.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createOutbox } from 'hermod'
import pg from 'pg'
import { hostMs } from '../numbers.mjs'
import { openPool } from '../pool.mjs'

const reportMs = 20

export async function play(_system, { url, count, events, idleMs, calmMs }, session) {
  const pool = openPool(url, 8)
  const outbox = createOutbox({ pool, prepare: true })
  const acknowledged = new Array(events).fill(null)
  let done = 0
  const deliver = async (batch) => {
    const now = hostMs()
    for (const { payload } of batch) acknowledged[payload.n] ??= now
    done += batch.length
  }
  outbox.sinkKind('hook', ({ to }) => ({ name: `hook-${to}`, deliver }))
  await Promise.all(Array.from({ length: 4 }, (_, part) => define(outbox, part, 4, count)))
  const heapBefore = heapBytes()
  const worker = await outbox.start({ upkeep: false })
  await pause(calmMs)
  const idle = { ...(await statementsWhile(idleMs)), connections: pool.totalCount }
  const bytesEach = (heapBytes() - heapBefore) / count
  session.tell({ word: 'ready' })
  const report = setInterval(() => session.tell({ word: 'count', count: done }), reportMs)
  await session.told('stop')
  clearInterval(report)
  const rssMb = process.memoryUsage().rss / 2 ** 20
  const stopping = performance.now()
  await worker.stop()
  const stopMs = performance.now() - stopping
  await pool.end()
  return { acknowledged, ...idle, bytesEach, rssMb, stopMs }
}

async function define(outbox, first, step, count) {
  for (let n = first; n < count; n += step) {
    await outbox.subscriptions.create(`hook-${n}`, { kind: 'hook', settings: { to: n }, types: [`t${n}.*`] })
  }
}

/** Messages to the server a second, heartbeat and listening included. */
async function statementsWhile(ms) {
  const { query } = pg.Client.prototype
  const texts = new Map()
  let statements = 0
  pg.Client.prototype.query = function (...given) {
    statements++
    const text = /outbox\.(\w+)/.exec(given[0]?.text ?? given[0] ?? '')?.[1] ?? 'other'
    texts.set(text, (texts.get(text) ?? 0) + 1)
    return query.apply(this, given)
  }
  await pause(ms)
  pg.Client.prototype.query = query
  return { statementsPerSecond: (statements / ms) * 1_000, statements: Object.fromEntries(texts) }
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')

function heapBytes() {
  collect()
  return process.memoryUsage().heapUsed
}
