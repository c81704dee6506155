// A listener that is stuck, in any database of the server, fills the queue of notifications; from
// then on every COMMIT with a NOTIFY fails. No step may be among them.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { session } from '../../../../../test/support/session.ts'
import { sqlState } from './script.ts'

export const notifyQueueFull = defineCase('notify-queue-full', async ({ db, engine }) => {
  const stuck = await db.admin.connect()
  const other = await session(db, 'other')
  const errors: unknown[] = []
  try {
    await stuck.query('listen elsewhere')
    await stuck.query('begin')
    await stuck.query('select 1')
    const notification = `select pg_notify('elsewhere', repeat('x', 7900))`
    let state: string | undefined
    for (let n = 0; n < 200 && state === undefined; n++) state = await sqlState(other.run(notification))
    expect(state, 'the script: the queue is full').toBe('54000')

    const sink = engine.testing.memorySink()
    const listener = { error: (event: unknown) => errors.push(event) }
    const outbox = engine.createOutbox({ pool: db.pool, listener })
    outbox.subscribe('all', { revision: 1, types: ['*'], from: 'beginning', sink })
    // Two of them: each would wake the other after a step.
    const workers = [await outbox.start({ concurrency: 1 }), await outbox.start({ concurrency: 1 })]
    for (const id of [1, 2, 3]) {
      await outbox.transaction((tx) => outbox.emit(tx, { type: 'doc.updated', aggregate: ['doc', id], payload: {} }))
    }
    await engine.testing.drain(outbox)
    for (const worker of workers) await worker.stop()
    expect(sink.accepted.map(({ aggregateId }) => aggregateId).sort()).toEqual(['1', '2', '3'])
    expect(errors).toEqual([])
    await holds(db, 'I1', 'I3', 'I5', 'I8')
  } finally {
    await stuck.query('rollback')
    await stuck.query('unlisten *')
    stuck.release()
  }
})
