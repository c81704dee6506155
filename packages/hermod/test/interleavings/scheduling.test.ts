// notBefore: against newer events of the same aggregate, and by the real clock across a restart.

import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { exerciseCases } from '../../../../test/support/case.ts'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { createOutbox } from '../../src/index.ts'
import { memorySink } from '../../src/testing/index.ts'
import { cases } from './cases/scheduling.ts'

exerciseCases(cases, { ownCluster: false })

const db = useDatabase()

it('a thousand events come within a second of their time, across a restart', async () => {
  const late: number[] = []
  const sink = memorySink({
    answer: (event) => void late.push(Date.now() - (event.payload as { due: number }).due),
  })
  const outbox = createOutbox({ pool: db.pool })
  outbox.subscribe('timer', { revision: 1, types: ['timer.*'], sink, from: 'beginning' })
  const machine = machineLateness()
  const first = await outbox.start({ upkeep: false })
  const startMs = Date.now() + 1_500
  await outbox.transaction((tx) =>
    outbox.emit(
      tx,
      Array.from({ length: 1_000 }, (_, n) => {
        const due = startMs + n * 4
        const aggregate: [string, string] = ['timer', String(n)]
        return { type: 'timer.rang', aggregate, payload: { due }, notBefore: new Date(due) }
      }),
    ),
  )
  await eventually(() => late.length >= 300, { timeoutMs: 20_000, what: 'the first 300' })
  await first.stop()
  const second = await outbox.start({ upkeep: false })
  await eventually(() => late.length >= 1_000, { timeoutMs: 20_000, what: 'all of them' })
  await second.stop()
  // An event waits for a timer and a handful of statements: each may be as late as the machine makes it.
  const worstMs = await machine.stop()
  expect(late).toHaveLength(1_000)
  expect(Math.min(...late), 'never early').toBeGreaterThanOrEqual(-5)
  expect(Math.max(...late), 'never a second late').toBeLessThan(1_000 + 5 * worstMs)
}, 60_000)

/** How late a timer and the answer of one statement are here and now, without the engine. */
function machineLateness() {
  let [worstMs, going] = [0, true]
  const measuring = (async () => {
    while (going) {
      const dueMs = performance.now() + 20
      await pause(20)
      await db.query('select 1')
      worstMs = Math.max(worstMs, performance.now() - dueMs)
    }
  })()
  return {
    stop: async () => {
      going = false
      await measuring
      return worstMs
    },
  }
}
