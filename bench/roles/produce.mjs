/**
 * Producers: as fast as they can in transactions of several events, or at a steady rate in
 * transactions of one. Says when each commit was answered.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { hostMs } from '../numbers.mjs'
import { items } from '../payload.mjs'
import { openPool } from '../pool.mjs'
import { documents } from './install.mjs'
import { transact } from './transact.mjs'

const UPDATE = 'update app.document set revision = revision + 1 where id = $1'

export async function play(system, task) {
  const pool = openPool(task.url, task.connections)
  const producer = await system.producer(task.url, task.connections)
  const { startedMs, sent, commits } = await produce(producer, pool, task)
  const endedMs = hostMs()
  await producer.end()
  await pool.end()
  return { startedMs, endedMs, ...(task.perSecond && { sent, commits }) }
}

/** When event n + 1 was about to be sent, and when the answer to its COMMIT was read. */
async function produce(producer, pool, { events, connections, perTransaction = 1, perSecond, warmEvents = 0 }) {
  const sent = new Array(events).fill(null)
  const commits = new Array(events).fill(null)
  const beganMs = performance.now()
  let startedMs = hostMs()
  let next = 0
  const work = async () => {
    while (next < events) {
      const first = next
      next += perTransaction
      if (perSecond) await waitUntil(beganMs + (first / perSecond) * 1_000)
      const batch = items(first + 1, Math.min(perTransaction, events - first))
      await transact(producer, pool, batch, async (tx) => {
        if (perTransaction === 1) await tx.query(UPDATE, [first % documents])
        sent.fill(hostMs(), first, first + batch.length)
      })
      commits.fill(hostMs(), first, first + batch.length)
      if (first < warmEvents) startedMs = hostMs()
    }
  }
  await Promise.all(Array.from({ length: connections }, work))
  return { startedMs, sent, commits }
}

async function waitUntil(atMs) {
  const leftMs = atMs - performance.now()
  if (leftMs > 0) await pause(leftMs)
}
