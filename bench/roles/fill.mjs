/** Commits a backlog, 1,000 events a transaction, and leaves the tables vacuumed and analysed. */

import { items } from '../payload.mjs'
import { openPool } from '../pool.mjs'

const perTransaction = 1_000

export async function play(system, { url, events, from = 1, connections = 2 }) {
  const pool = openPool(url, connections)
  const producer = await system.producer(url)
  await system.room?.(pool, events)
  let next = from
  const fill = async () => {
    const client = await pool.connect()
    while (next < from + events) {
      const first = next
      next += perTransaction
      const count = Math.min(perTransaction, from + events - first)
      await client.query('begin')
      await producer.enqueue(client, items(first, count))
      await client.query('commit')
    }
    client.release()
  }
  await Promise.all(Array.from({ length: connections }, fill))
  // Statistics as autovacuum would have made them, and no hint bits left to the first reader.
  await pool.query('vacuum (analyze)')
  await producer.end()
  await pool.end()
}
