// Failing: what waits, what flows, what is given up, and what is found again.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import type { OutboxEvent } from '../../../src/event.ts'
import { label, labels, quiet, stage, versionsOf } from './stage.ts'

/** Fails these, as `a@1`, this often. */
function failing(times: Record<string, number>) {
  const left = new Map(Object.entries(times))
  return (event: OutboxEvent): boolean => {
    const count = left.get(label(event)) ?? 0
    left.set(label(event), count - 1)
    return count > 0
  }
}

export const holdOneAggregate = defineCase('hold-one-aggregate', async (env) => {
  const s = await stage(env)
  const fails = failing({ 'a@1': 2, 'a@2': 1 })
  const sink = env.engine.testing.memorySink({
    capabilities: { keepsOrder: false },
    answer: (event) => (fails(event) ? s.say.retry({ message: 'later' }) : undefined),
  })
  const outbox = s.outbox(sink)
  await s.change('a', 'b', 'a', 'c')
  await outbox.runOnce(quiet)
  expect(labels(sink).sort(), 'followers of a retrying head').toEqual(['b@1', 'c@1'])
  expect(await s.rows(), 'followers have no rows').toEqual(['a@1 retrying 1'])
  await s.change('a', 'b')
  await outbox.runOnce(quiet)
  expect(labels(sink).sort(), 'others flow').toEqual(['b@1', 'b@2', 'c@1'])
  expect(await s.rows()).toEqual(['a@1 retrying 1'])
  const words = await s.db.query<{ state: string }>(
    `select state from outbox.status where aggregate_id = 'a' and subscription = 'all' order by pos`,
  )
  expect(
    words.map(({ state }) => state),
    'words for the aggregate',
  ).toEqual(['retrying', 'blocked', 'blocked'])
  await s.clock.advance(1_100)
  await outbox.runOnce(quiet)
  expect(await s.rows()).toEqual(['a@1 retrying 2'])
  await s.clock.advance(2_100)
  await outbox.runOnce(quiet)
  expect(versionsOf(sink, 'a')).toEqual([1])
  expect(await s.rows(), 'the row walks on').toEqual(['a@2 retrying 1'])
  await s.clock.advance(1_100)
  await outbox.runOnce(quiet)
  expect(versionsOf(sink, 'a'), 'order of the aggregate').toEqual([1, 2, 3])
  expect(await s.rows(), 'rows in the end').toEqual([])
  await holds(s.db, 'I8')
})

/** A sink that keeps order refuses the followers itself: they wait, and spend nothing. */
export const holdWithinCall = defineCase('hold-one-aggregate: refused in one call', async (env) => {
  const s = await stage(env)
  const fails = failing({ 'a@1': 1 })
  const sink = env.engine.testing.memorySink({
    answer: (event) => (fails(event) ? s.say.retry() : undefined),
  })
  const outbox = s.outbox(sink)
  await s.change('a', 'a', 'a')
  await outbox.runOnce(quiet)
  expect(await s.rows(), 'followers have no rows').toEqual(['a@1 retrying 1'])
  await s.clock.advance(1_100)
  await outbox.runOnce(quiet)
  expect(versionsOf(sink, 'a')).toEqual([1, 2, 3])
  expect(await s.rows()).toEqual([])
})

/** Without order every event stands for itself: none waits, none is forgotten. */
export const noOrder = defineCase('hold-one-aggregate: without order', async (env) => {
  const s = await stage(env)
  const fails = failing({ 'a@1': 1, 'a@3': 1 })
  const sink = env.engine.testing.memorySink({
    capabilities: { keepsOrder: false, itemsMax: 1 },
    answer: (event) => (fails(event) ? s.say.retry() : undefined),
  })
  const outbox = s.outbox(sink, { subscription: { order: 'none', batch: { count: 2 } } })
  await s.change('a', 'a', 'a', 'a', 'a', 'a')
  await outbox.runOnce(quiet)
  expect(await s.rows()).toEqual(['a@1 retrying 1', 'a@3 retrying 1'])
  await s.clock.advance(1_100)
  await outbox.runOnce(quiet)
  expect(versionsOf(sink, 'a').sort(), 'events without order').toEqual([1, 2, 3, 4, 5, 6])
  expect(await s.rows()).toEqual([])
  await holds(s.db, 'I8')
})

export const deadHead = defineCase('dead-head', async (env) => {
  const s = await stage(env)
  const fails = failing({ 'a@1': 2 })
  const sink = env.engine.testing.memorySink({
    answer: (event) => (fails(event) ? s.say.retry() : undefined),
  })
  const outbox = s.outbox(sink, { subscription: { retry: { attemptsMax: 2 } } })
  await s.change('a', 'a', 'a')
  await outbox.runOnce(quiet)
  await s.clock.advance(1_100)
  await outbox.runOnce(quiet)
  expect(versionsOf(sink, 'a'), 'followers of a dead letter').toEqual([2, 3])
  expect(await s.rows()).toEqual(['a@1 dead 2'])
  // An operator tries it again: refused, as newer state is outside; forced, that state follows it.
  const { retry } = await env.engine.load<typeof import('../../../src/desk/retry.ts')>('desk/retry.ts')
  const by = { actor: 'ann', reason: 'repaired' }
  const refused = retry(s.db.pool as never, 'all', 1, by).catch((error) => error.code)
  expect(await refused, 'a retry that would undo newer state').toMatch(/^HMD_/)
  await retry(s.db.pool as never, 'all', 1, { ...by, force: true })
  await s.change('a')
  await outbox.runOnce(quiet)
  expect(versionsOf(sink, 'a').at(-1), 'the last state after the retry').toBe(4)
  expect(versionsOf(sink, 'a'), 'the retry happened').toContain(1)
  expect(await s.rows()).toEqual([])
  await holds(s.db, 'I8')
})

/** Two dead letters of one aggregate: the first is retried and must not stumble over the second. */
export const deadTwice = defineCase('dead-head: two dead letters', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink({
    answer: (event) => (event.attempt === 1 && ['a@1', 'a@2'].includes(label(event)) ? s.say.rejected() : undefined),
  })
  const outbox = s.outbox(sink)
  await s.change('a')
  await outbox.runOnce(quiet)
  await s.change('a', 'a')
  await outbox.runOnce(quiet)
  expect(await s.rows()).toEqual(['a@1 dead 1', 'a@2 dead 1'])
  await s.db.query(`update outbox.delivery set state = 'retrying', next_attempt_at = outbox.clock() where pos = 1`)
  await outbox.runOnce(quiet)
  expect(versionsOf(sink, 'a').at(-1), 'the last state after the retry').toBe(3)
  expect(await s.rows(), 'the other dead letter stays').toEqual(['a@2 dead 1'])
})

export const deadHolds = defineCase('dead-head: followers stay held by policy', async (env) => {
  const s = await stage(env)
  for (const coalesce of ['none', 'latest'] as const) {
    const name = `hold-${coalesce}`
    let broken = true
    const sink = env.engine.testing.memorySink({
      capabilities: { keepsOrder: false },
      answer: (event) =>
        broken && event.aggregateId === name && label(event).endsWith('@1') ? s.say.rejected() : undefined,
    })
    const outbox = s.outbox(sink, {
      name,
      subscription: { onDead: 'hold', coalesce, aggregates: ['doc'] },
    })
    await s.change(name)
    await outbox.runOnce(quiet)
    await s.change(name, name)
    await outbox.runOnce(quiet)
    expect(versionsOf(sink, name), `followers of a held dead letter, ${coalesce}`).toEqual([])
    expect(await s.rows(name)).toEqual([`${name}@1 dead 1`])
    broken = false
    await s.db.query(
      `update outbox.delivery set state = 'retrying', next_attempt_at = outbox.clock() where subscription = $1`,
      [name],
    )
    await outbox.runOnce(quiet)
    expect(versionsOf(sink, name).at(-1), `the newest state after a held dead letter, ${coalesce}`).toBe(3)
    expect(await s.rows(name)).toEqual([])
  }
})

/** The rejected one and its followers in one call, and one rejected by the sink's own check. */
export const deadHoldsInBatch = defineCase('dead-head: held within one batch', async (env) => {
  const s = await stage(env)
  const sink = {
    ...env.engine.testing.memorySink({
      capabilities: { keepsOrder: false },
      answer: (event) => (label(event) === 'a@1' ? s.say.rejected() : undefined),
    }),
    validate: (event: OutboxEvent) => (label(event) === 'b@2' ? 'too odd' : undefined),
  }
  await s.change('a', 'b', 'a', 'b', 'b', 'c')
  await s.outbox(sink, { subscription: { onDead: 'hold' } }).runOnce(quiet)
  expect(labels(sink).sort(), 'followers of a held dead letter').toEqual(['b@1', 'c@1'])
  expect((await s.rows()).sort()).toEqual(['a@1 dead 1', 'b@2 dead 1'])
})

export const coalesceReplacesRetry = defineCase('coalesce-replaces-retry', async (env) => {
  const s = await stage(env)
  const fails = failing({ 'a@1': 1, 'a@3': 1 })
  const sink = env.engine.testing.memorySink({
    answer: (event) => (fails(event) ? s.say.retry() : undefined),
  })
  const outbox = s.outbox(sink, { subscription: { coalesce: 'latest' } })
  await s.change('a')
  await outbox.runOnce(quiet)
  await s.change('a', 'b', 'a')
  await outbox.runOnce(quiet)
  expect(await s.rows(), 'the newest takes the row over').toEqual(['a@3 retrying 1'])
  await s.clock.advance(1_100)
  await outbox.runOnce(quiet)
  expect(await s.rows(), 'attempts stay').toEqual(['a@3 retrying 2'])
  await s.clock.advance(2_100)
  await outbox.runOnce(quiet)
  expect(versionsOf(sink, 'a'), 'what is sent of the aggregate').toEqual([3])
  await s.change('a', 'a', 'b')
  await outbox.runOnce(quiet)
  expect(versionsOf(sink, 'a'), 'the last change is sent').toEqual([3, 5])
  expect(await s.rows()).toEqual([])
  await holds(s.db, 'I8')
})

/** A newer state closes a dead letter, also when it was read before the letter was written. */
export const coalesceClosesDead = defineCase('coalesce-replaces-retry: closes a dead letter', async (env) => {
  const s = await stage(env)
  const sink = env.engine.testing.memorySink({
    answer: (event) => (label(event) === 'a@1' ? s.say.rejected() : undefined),
  })
  await s.change('a')
  await s.change('b')
  await s.change('a')
  const outbox = s.outbox(sink, {
    subscription: { coalesce: 'latest', lanes: 1, batch: { count: 1 } },
  })
  await outbox.runOnce(quiet)
  expect(labels(sink)).toEqual(['b@1', 'a@2'])
  expect(await s.rows(), 'a dead letter with a newer state outside').toEqual([])
})

export const coalesceWithoutOrder = defineCase('coalesce-replaces-retry: without order', async (env) => {
  const s = await stage(env)
  const fails = failing({ 'a@1': 1 })
  const sink = env.engine.testing.memorySink({
    answer: (event) => (fails(event) ? s.say.retry() : undefined),
  })
  const outbox = s.outbox(sink, { subscription: { coalesce: 'latest', order: 'none' } })
  await s.change('a')
  await outbox.runOnce(quiet)
  await s.change('a')
  await outbox.runOnce(quiet)
  await s.clock.advance(1_100)
  await outbox.runOnce(quiet)
  expect(versionsOf(sink, 'a').at(-1), 'the last state').toBe(2)
})

export const poison = defineCase('poison', async (env) => {
  const s = await stage(env)
  const bad = 'd617'
  const accepted: string[] = []
  const calls: number[] = []
  const sink = async (events: readonly OutboxEvent[]) => {
    calls.push(events.length)
    if (events.some(({ aggregateId }) => aggregateId === bad))
      return events.map(() => (events.length > 1 ? s.say.split() : s.say.rejected({ code: '400' })))
    for (const event of events) accepted.push(event.aggregateId)
    return undefined
  }
  await s.bulk(1_000, `'doc.changed'`, `'d' || n`)
  const outbox = s.outbox(sink, { subscription: { lanes: 1, batch: { count: 1_000 } } })
  await outbox.runOnce(quiet)
  expect(accepted.length, 'the others').toBe(999)
  expect(new Set(accepted).size, 'sent once each').toBe(999)
  expect(calls.length, 'calls to isolate one poison').toBeLessThanOrEqual(25)
  expect((await s.rows()).length, 'dead letters').toBe(1)
  expect((await s.rows())[0]).toMatch(/^d617@0 dead 1$/)
  await holds(s.db, 'I8')
})

/** A policy changed while followers wait: whoever was held is sent under the new one. */
export const policyRaised = defineCase('hold-one-aggregate: policy raised meanwhile', async (env) => {
  const s = await stage(env)
  for (const raised of [{ order: 'none' }, { coalesce: 'latest' }] as const) {
    const name = Object.keys(raised)[0] as string
    let broken = true
    const sink = env.engine.testing.memorySink({
      answer: (event) => (broken && label(event) === `${name}@1` ? s.say.retry() : undefined),
    })
    await s.change(name, name, name)
    await s.outbox(sink, { name }).runOnce(quiet)
    expect(await s.rows(name)).toEqual([`${name}@1 retrying 1`])
    broken = false
    await s.clock.advance(1_100)
    const outbox = s.outbox(sink, { name, subscription: { revision: 2, ...raised } })
    await outbox.runOnce(quiet)
    expect(versionsOf(sink, name).at(-1), `the newest of those held, ${name}`).toBe(3)
    expect(await s.rows(name)).toEqual([])
    await eventually(async () => (await s.open(name)) === 0)
  }
})

/** A row and its follower are settled together: the follower's own followers are not forgotten. */
export const followersOfFollowers = defineCase('hold-one-aggregate: a row settled with its follower', async (env) => {
  const s = await stage(env)
  const fails = failing({ 'a@1': 1 })
  const sink = env.engine.testing.memorySink({ answer: (event) => (fails(event) ? s.say.retry() : undefined) })
  const outbox = s.outbox(sink, { subscription: { batch: { count: 2 }, lanes: 1 } })
  await s.change('a', 'a')
  await s.change('a')
  await outbox.runOnce(quiet)
  await s.clock.advance(1_100)
  await outbox.runOnce(quiet)
  expect(versionsOf(sink, 'a'), 'what waited behind the row').toEqual([1, 2, 3])
  expect(await s.rows()).toEqual([])
  await holds(s.db, 'I8')
})
