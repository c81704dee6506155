/** One event a transaction at a steady rate, for the busy subscriptions in turn; says when each COMMIT was answered. */
import { setTimeout as pause } from 'node:timers/promises'
import { createOutbox } from 'hermod'
import { hostMs } from '../numbers.mjs'
import { openPool } from '../pool.mjs'

export async function play(_system, { url, busy, events, perSecond, connections }) {
  const pool = openPool(url, connections + 1)
  const outbox = createOutbox({ pool, prepare: true })
  const commits = new Array(events).fill(null)
  const beganMs = performance.now()
  let next = 0
  const work = async () => {
    while (next < events) {
      const n = next++
      const leftMs = beganMs + (n / perSecond) * 1_000 - performance.now()
      if (leftMs > 0) await pause(leftMs)
      await outbox.transaction(async (_tx, emit) => {
        emit({ type: `t${n % busy}.happened`, aggregate: ['thing', n % 5_000], payload: { n } })
      })
      commits[n] = hostMs()
    }
  }
  await Promise.all(Array.from({ length: connections }, work))
  await pool.end()
  return { commits }
}
