/** Commits a backlog, 1,000 events a transaction, and leaves the tables vacuumed and analysed. */

import { items } from '../payload.mjs'
import { openPool } from '../pool.mjs'
import { transact } from './transact.mjs'

const perTransaction = 1_000

export async function play(system, { url, events, from = 1, connections = 2 }) {
  const pool = openPool(url, connections)
  const producer = await system.producer(url, connections)
  await system.room?.(pool, events)
  let next = from
  const fill = async () => {
    while (next < from + events) {
      const first = next
      next += perTransaction
      const count = Math.min(perTransaction, from + events - first)
      await transact(producer, pool, items(first, count))
    }
  }
  await Promise.all(Array.from({ length: connections }, fill))
  // Statistics as autovacuum would have made them, and no hint bits left to the first reader.
  await pool.query('vacuum (analyze)')
  await producer.end()
  await pool.end()
}
