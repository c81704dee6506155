// The server goes away under a running worker and comes back: the worker survives, nothing is lost.

import { expect, it, onTestFinished } from 'vitest'
import { loadEngine } from '../../../../test/support/case.ts'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { holds } from '../../../../test/support/invariants.ts'
import { quiet, stage, versionsOf } from './cases/stage.ts'

const db = useDatabase({ ownCluster: true, durable: true })

it('a restarted server is survived', { timeout: 60_000 }, async () => {
  const s = await stage({ db, engine: await loadEngine() })
  const sink = s.env.engine.testing.memorySink()
  const worker = await s.outbox(sink).start({ ...quiet, listen: true })
  onTestFinished(() => worker.stop())
  for (const mode of ['fast', 'immediate'] as const) {
    await s.change('a', 'b', 'c')
    await db.postgres.stop(mode)
    await db.postgres.start()
    await eventually(() => db.query('select 1'), { timeoutMs: 20_000 })
  }
  await s.change('a', 'b', 'c')
  await eventually(async () => (await s.open()) === 0, { timeoutMs: 30_000 })
  await worker.stop()
  for (const id of ['a', 'b', 'c']) {
    const sent = versionsOf(sink, id)
    expect([...new Set(sent)], `versions of ${id}`).toEqual([1, 2, 3])
  }
  expect(await s.held(), 'lanes still held').toBe(0)
  await holds(db, 'I1', 'I5', 'I8')
})
