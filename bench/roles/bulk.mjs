/** Bulk emit: transactions of many events, one after the other on one connection. */

import { items } from '../payload.mjs'
import { openPool } from '../pool.mjs'
import { transact } from './transact.mjs'

export async function play(system, { url, events, perTransaction }) {
  const pool = openPool(url, 1)
  const producer = await system.producer(url)
  // The first transactions compile and plan; the events are made before the clock starts.
  for (let n = 0; n < 5; n++) await transact(producer, pool, items(1, perTransaction))
  const batches = Array.from({ length: Math.ceil(events / perTransaction) }, (_, index) =>
    items(1 + index * perTransaction, perTransaction),
  )
  const startedMs = performance.now()
  for (const batch of batches) await transact(producer, pool, batch)
  const seconds = (performance.now() - startedMs) / 1_000
  await producer.end()
  await pool.end()
  return { seconds, perSecond: (batches.length * perTransaction) / seconds }
}
