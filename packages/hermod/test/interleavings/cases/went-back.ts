// Storage that went back in time under the same identity and timeline: only who has seen more can tell.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import { labels, quiet, stage } from './stage.ts'

/** As an older copy would be: the tail of the log is gone, and with it the events in it. */
const GO_BACK = `
  delete from outbox.event e using outbox.log g where g.event_id = e.id and g.pos > 2;
  delete from outbox.log where pos > 2;
  delete from outbox.cursor where pos > 2;
  delete from outbox.step where pos > 2`

export const headWentBack = defineCase('head-went-back', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink()
  const errors: { code?: string; fix?: string }[] = []
  const listener = { error: ({ error }: { error: unknown }) => void errors.push(error as never) }
  const outbox = s.outbox(sink, { listener })
  const worker = await outbox.start(quiet)
  for (const id of ['a', 'b', 'lost']) {
    await s.emit([id])
    await eventually(() => labels(sink).includes(`${id}@1`))
  }
  await s.db.query('vacuum outbox.worker')
  await s.db.query(GO_BACK)
  await s.emit(['late'])
  await eventually(() => errors.length > 0 || labels(sink).includes('late@1'), { what: 'a refusal' })
  expect(labels(sink), 'a position that was used before').not.toContain('late@1')
  expect(errors[0]).toMatchObject({ code: 'HMD_HEAD_WENT_BACK', fix: expect.stringContaining('--rolled-back') })
  await worker.stop()
  // The same process remembers, whatever numbers.
  await expect(outbox.runOnce({ upkeep: false })).rejects.toMatchObject({ code: 'HMD_HEAD_WENT_BACK' })
  const { rebase } = await env.engine.load<typeof import('../../../src/desk/rebase.ts')>('desk/rebase.ts')
  await rebase(s.db.pool, { rolledBack: true })
  await outbox.runOnce({ upkeep: false })
  expect(labels(sink), 'after rebase').toContain('late@1')
  const used = sink.accepted.map(({ position }) => position)
  expect(new Set(used).size, 'positions used twice').toBe(used.length)
  await holds(s.db, 'I1', 'I3', 'I5')
})

/** A schema that was made anew is not an old one. */
export const newSchema = defineCase('head-went-back: a new schema', async (env) => {
  const s = await stage(env)
  const outbox = s.outbox(env.engine.testing.memorySink())
  await s.emit(['a', 'b'])
  await outbox.runOnce({ upkeep: false })
  await s.db.query('drop schema outbox cascade')
  await outbox.migrate()
  await s.emit(['c'])
  await outbox.runOnce({ upkeep: false })
  expect((await s.db.query('select pos::int from outbox.log')).length).toBe(1)
})
