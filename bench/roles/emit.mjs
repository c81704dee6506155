/** The write path: `update + enqueue + commit` on a few connections for a while. */

import { item } from '../payload.mjs'
import { openPool } from '../pool.mjs'
import { documents } from './install.mjs'
import { transact } from './transact.mjs'

const UPDATE = 'update app.document set revision = revision + 1 where id = $1'

export async function play(system, { url, connections, ms, warmMs }) {
  const pool = openPool(url, connections)
  const producer = await system.producer(url, connections)
  const loop = { producer, pool, connections }
  await run(loop, warmMs)
  const startedMs = performance.now()
  const transactions = await run(loop, ms)
  const seconds = (performance.now() - startedMs) / 1_000
  await producer.end()
  await pool.end()
  return { transactions, seconds, perSecond: transactions / seconds }
}

let number = 0

async function run({ producer, pool, connections }, ms) {
  const untilMs = performance.now() + ms
  const counts = Array.from({ length: connections }, async (_, index) => {
    let count = 0
    while (performance.now() < untilMs) {
      // Connections never wait for each other's rows.
      const row = Math.floor(Math.random() * (documents / connections)) * connections + index
      await transact(producer, pool, [item(++number)], (tx) => tx.query(UPDATE, [row % documents]))
      count++
    }
    return count
  })
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}
