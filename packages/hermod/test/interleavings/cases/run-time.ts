// Subscriptions that come and go while workers run: declared, stored, changed, paused and removed; kinds of sinks that
// this process lacks or that refuse their settings; two processes.

import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import type { Definition, OutboxOptions } from '../../../src/options.ts'
import type { Listener } from '../../../src/telemetry.ts'
import type { MemorySink } from '../../../src/testing/index.ts'
import { type Gate, gate, labels, quiet, type Stage, stage } from './stage.ts'

const by = { actor: 'test', reason: 'no longer wanted' }

/** A process: an outbox of its own, whose kind `memory` makes a sink for each `settings.to`. */
export function processOn(env: Env, listener: Listener = {}) {
  const outbox = env.engine.createOutbox({ pool: env.db.pool, random: () => 0, listener } as unknown as OutboxOptions)
  const sinks = new Map<string, MemorySink & { hold(begun: Gate, may: Gate): void }>()
  const closed: string[] = []
  outbox.sinkKind('memory', ({ to }) => {
    if (to === 'nowhere') throw new Error('nothing listens at nowhere, with key s3cr3t-value')
    const sink = env.engine.testing.memorySink()
    let held: readonly [Gate, Gate] | undefined
    const hold = (begun: Gate, may: Gate) => {
      held = [begun, may]
    }
    sinks.set(String(to), { ...sink, hold })
    const deliver = async (...args: Parameters<typeof sink.deliver>) => {
      held?.[0].open()
      await held?.[1].opened
      return sink.deliver(...args)
    }
    return { ...sink, deliver, close: async () => void closed.push(String(to)) }
  })
  const heard = (to: string) => (sinks.has(to) ? labels(sinks.get(to) as MemorySink) : [])
  return { outbox, sinks, closed, heard }
}

const memory = (to: string, more: Partial<Definition> = {}): Definition => ({
  kind: 'memory',
  settings: { to },
  types: ['*'],
  ...more,
})

async function servedBy(s: Stage, name: string): Promise<number> {
  const rows = await s.db.query('select 1 from outbox.worker where $1 = any (subscriptions)', [name])
  return rows.length
}

export const declaredAtRunTime = defineCase('subscription-at-run-time: declared after the start', async (env) => {
  const s = await stage(env)
  const [first, second] = [env.engine.testing.memorySink(), env.engine.testing.memorySink()]
  const outbox = s.outbox(first)
  const worker = await outbox.start(quiet)
  outbox.subscribe('late', { revision: 1, types: ['*'], from: 'beginning', sink: second })
  await s.change('a')
  await eventually(() => labels(second).length === 1, { what: 'the late one to be served' })
  await eventually(() => labels(first).length === 1)

  const [begun, may] = [gate(), gate()]
  const { deliver } = second
  second.deliver = async (...args: Parameters<typeof deliver>) => {
    begun.open()
    await may.opened
    return deliver(...args)
  }
  await s.change('b')
  await begun.opened
  const gone = outbox.unsubscribe('late')
  may.open()
  await gone
  expect(await s.open('late'), 'the call in flight was settled').toBe(0)
  const owners = await s.db.query(`select 1 from outbox.lane where subscription = 'late' and owner is not null`)
  expect(owners, 'lanes still held').toEqual([])
  await s.change('c')
  await eventually(() => labels(first).length === 3)
  expect(labels(second), 'served after unsubscribe').toEqual(['a@1', 'b@1'])
  await worker.stop()
  await holds(s.db, 'I1', 'I3', 'I5')
})

export const storedAtRunTime = defineCase('subscription-at-run-time: added, changed, paused, removed', async (env) => {
  const s = await stage(env)
  const { outbox, heard, closed } = processOn(env)
  const other = env.engine.testing.memorySink()
  outbox.subscribe('beside', { revision: 1, types: ['*'], from: 'beginning', sink: other })
  const worker = await outbox.start({ ...quiet, listen: true })
  expect(await outbox.subscriptions.create('hook', memory('one'))).toBe(1)
  await eventually(() => servedBy(s, 'hook').then((n) => n === 1), { what: 'the new one to be served' })
  await s.change('a')
  await eventually(() => heard('one').length === 1)

  expect(await outbox.subscriptions.change('hook', { settings: { to: 'two' } })).toBe(2)
  await eventually(() => closed.includes('one'), { what: 'the old sink to be closed' })
  await s.change('b')
  await eventually(() => heard('two').length === 1)
  expect(heard('one'), 'sent to the old address').toEqual(['a@1'])
  expect(await outbox.subscriptions.change('hook', { settings: { to: 'two' } }), 'nothing changed').toBe(2)

  await outbox.pause('hook', by)
  await eventually(async () => (await s.held()) <= 16 && (await s.open('hook')) === 0)
  await s.change('c')
  await eventually(() => labels(other).length === 3, { what: 'the one beside it' })
  expect(heard('two'), 'sent while paused').toEqual(['b@1'])
  await expect(outbox.subscriptions.remove('hook', by)).rejects.toMatchObject({ code: 'HMD_SUBSCRIPTION_UNDELIVERED' })
  const gone = await outbox.subscriptions.remove('hook', { ...by, confirm: 'hook' })
  expect(gone).toMatchObject({ subscription: 'hook', discarded: 1 })
  await eventually(() => closed.includes('two'), { what: 'the sink of the removed one to be closed' })
  const [audit] = await outbox.audit({ subscription: 'hook' })
  expect(audit).toMatchObject({ action: 'remove', actor: 'test', count: 1 })
  for (const table of ['lane', 'cursor', 'filter', 'delivery', 'sink_settings'])
    expect(await s.db.query(`select 1 from outbox.${table} where subscription = 'hook'`), table).toEqual([])

  expect(await outbox.subscriptions.create('hook', memory('three')), 'a name used again').toBe(3)
  await eventually(() => servedBy(s, 'hook').then((n) => n === 1))
  await s.change('d')
  await eventually(() => heard('three').length === 1)
  await eventually(() => labels(other).length === 4)
  expect(labels(other), 'the one beside it').toEqual(['a@1', 'b@1', 'c@1', 'd@1'])
  await worker.stop()
  expect(closed, 'closed at the end').toEqual(['one', 'two', 'three'])
  await holds(s.db, 'I1', 'I3', 'I5', 'I8')
})

/** What was read before the change and passed is settled, though its call ends after the change. */
export const changedMeanwhile = defineCase(
  'subscription-at-run-time: changed while a call is under way',
  async (env) => {
    const s = await stage(env)
    const { outbox, sinks, closed, heard } = processOn(env)
    const [begun, may] = [gate(), gate()]
    const worker = await outbox.start({ ...quiet, listen: true })
    await outbox.subscriptions.create('hook', memory('one'))
    const sink = await eventually(() => sinks.get('one') ?? false)
    sink.hold(begun, may)
    await s.change('a', 'b')
    await begun.opened
    await outbox.subscriptions.change('hook', { settings: { to: 'two' } })
    may.open()
    await eventually(() => closed.includes('one'))
    expect(await s.open('hook'), 'settled after the change').toBe(0)
    await s.change('c')
    await eventually(() => heard('two').includes('c@1'))
    expect([...heard('one'), ...heard('two')].sort(), 'sent again because of a change').toEqual(['a@1', 'b@1', 'c@1'])
    await worker.stop()
    await holds(s.db, 'I1', 'I5', 'I8')
  },
)

export const withCommit = defineCase(
  'subscription-at-run-time: it comes with COMMIT, within two seconds',
  async (env) => {
    const s = await stage(env)
    const { outbox, heard } = processOn(env)
    // No LISTEN: the heartbeat alone.
    const worker = await outbox.start(quiet)
    let committedMs = 0
    await outbox.transaction(async (tx) => {
      await outbox.subscriptions.create('hook', memory('one'), { tx })
      expect(await servedBy(s, 'hook'), 'served before COMMIT').toBe(0)
      committedMs = performance.now()
    })
    await eventually(() => servedBy(s, 'hook').then((n) => n === 1), { timeoutMs: 4_000 })
    await s.change('a')
    await eventually(() => heard('one').length === 1)
    expect(performance.now() - committedMs, 'served within two seconds of COMMIT, on a busy machine').toBeLessThan(
      4_000,
    )
    await expect(
      outbox.transaction(async (tx) => {
        await outbox.subscriptions.create('never', memory('two'), { tx })
        throw new Error('rolled back')
      }),
    ).rejects.toThrow('rolled back')
    expect(await outbox.subscriptions.get('never'), 'after a rollback').toBeUndefined()
    await worker.stop()
  },
)

export const kindUnknown = defineCase('subscription-at-run-time: a kind that is unknown here', async (env) => {
  const s = await stage(env)
  const without = env.engine.createOutbox({ pool: s.db.pool } as unknown as OutboxOptions)
  await without.subscriptions.create('hook', memory('one'))
  const worker = await without.start(quiet)
  await s.change('a')
  await eventually(async () => {
    const { checks } = await env.engine.doctor(s.db.pool as never)
    return checks.some(({ says }) => says.includes('HMD_SINK_KIND_UNKNOWN') && says.includes('hook'))
  })
  const claimed = await s.db.query(`select 1 from outbox.lane where subscription = 'hook' and fence > 0`)
  expect(claimed, 'claims without the kind').toEqual([])
  const [stats] = (await without.stats()).subscriptions
  expect(stats).toMatchObject({ name: 'hook', kind: 'memory', workers: 0 })
  const sink = env.engine.testing.memorySink()
  without.sinkKind('memory', () => sink)
  await eventually(() => labels(sink).length === 1, { what: 'the kind that was registered late' })
  await worker.stop()
})

export const factoryThrows = defineCase('subscription-at-run-time: a kind that refuses its settings', async (env) => {
  const s = await stage(env)
  const warnings: string[] = []
  const { outbox, heard } = processOn(env, {
    warning: ({ code, message }) => void warnings.push(`${code} ${message}`),
  })
  const worker = await outbox.start({ ...quiet, listen: true })
  const settings = { to: 'nowhere', key: 's3cr3t-value' }
  await outbox.subscriptions.create('bad', memory('nowhere', { settings, from: 'beginning' }))
  await outbox.subscriptions.create('good', memory('one'))
  await eventually(() => servedBy(s, 'good').then((n) => n === 1))
  await s.change('a')
  await eventually(() => heard('one').length === 1)
  await eventually(() => warnings.length > 0)
  // Another change makes every worker look at all of them again.
  await outbox.subscriptions.create('other', memory('two'))
  await eventually(() => servedBy(s, 'other').then((n) => n === 1))
  expect(warnings, 'told once').toHaveLength(1)
  expect(warnings[0]).toContain('HMD_SINK_KIND_FAILED')
  expect(warnings[0], 'secrets in a warning').not.toContain('s3cr3t')
  await outbox.subscriptions.change('bad', { settings: { to: 'three' } })
  await eventually(() => heard('three').length === 1, { what: 'the corrected one' })
  await worker.stop()
})

export const twoProcesses = defineCase('subscription-at-run-time: two processes', async (env) => {
  const s = await stage(env)
  const [one, two] = [processOn(env), processOn(env)]
  const workers = [await one.outbox.start({ ...quiet, listen: true }), await two.outbox.start(quiet)]
  await one.outbox.subscriptions.create('hook', memory('x'))
  await eventually(() => servedBy(s, 'hook').then((n) => n === 2), { what: 'both to serve it' })
  const heard = () => [...one.heard('x'), ...two.heard('x')]
  await s.change('a')
  await eventually(() => heard().length === 1)
  await two.outbox.subscriptions.change('hook', { types: ['doc.changed'], settings: { to: 'y' } })
  await eventually(() => one.closed.length === 1 && two.closed.length === 1, { what: 'both to change' })
  await s.change('b')
  const now = () => [...one.heard('y'), ...two.heard('y')]
  await eventually(() => now().length === 1)
  await eventually(async () => (await s.open('hook')) === 0)
  await two.outbox.subscriptions.remove('hook', by)
  await eventually(() => one.closed.length === 2 && two.closed.length === 2, { what: 'both to let it go' })
  await eventually(() => servedBy(s, 'hook').then((n) => n === 0))
  expect([...heard(), ...now()]).toEqual(['a@1', 'b@1'])
  for (const worker of workers) await worker.stop()
  await holds(s.db, 'I1', 'I5', 'I8')
})

export const shapes = defineCase('subscription-at-run-time: names, sizes and shapes are refused', async (env) => {
  const { outbox } = processOn(env)
  outbox.sinkKind('checked', () => async () => {}, {
    check: ({ url }) => (String(url).startsWith('https:') ? undefined : `url must be https, not ${url}`),
  })
  const { subscriptions } = outbox
  const refused = async (work: Promise<unknown>, field: string, says: RegExp) =>
    expect(await work.catch((error) => error), String(says)).toMatchObject({
      code: expect.stringMatching(/^HMD_/),
      field,
      message: expect.stringMatching(says),
      fix: expect.stringMatching(/\w/),
    })
  await refused(subscriptions.create('Not A Name', memory('x')), 'name', /must be a name/)
  await refused(subscriptions.create('x', { ...memory('x'), kind: '' }), 'kind', /must be the name of a kind/)
  await refused(subscriptions.create('x', memory('x', { types: [] })), 'types', /list of 1 to 1000/)
  const large = { to: 'x'.repeat(16_384) }
  await refused(subscriptions.create('x', memory('x', { settings: large })), 'settings', /at most 16384 bytes/)
  await refused(subscriptions.create('x', memory('x', { settings: [] as never })), 'settings', /must be an object/)
  const plain = { kind: 'checked', settings: { url: 'http://user:pass@host/' }, types: ['*'] }
  await refused(subscriptions.create('x', plain), 'settings', /url must be https, not …/)
  await subscriptions.create('hook', memory('x'))
  const conflict = { code: 'HMD_SUBSCRIPTION_CONFLICT' }
  await expect(subscriptions.create('hook', memory('x'))).rejects.toMatchObject(conflict)
  await expect(subscriptions.change('hook', { types: ['a.*'] }, { revision: 7 })).rejects.toMatchObject(conflict)
  await expect(subscriptions.change('none', {})).rejects.toMatchObject({ code: 'HMD_SUBSCRIPTION_UNKNOWN' })
  outbox.subscribe('hook', { revision: 1, types: ['*'], sink: () => {} })
  await expect(outbox.start(quiet), 'declared under a stored name').rejects.toMatchObject(conflict)
  expect(await subscriptions.list({ kind: 'memory' })).toMatchObject([{ name: 'hook', kind: 'memory', revision: 1 }])
  expect(JSON.stringify(await subscriptions.list()), 'settings in a list').not.toContain('settings')
})

/** A failover loses a change; another one comes under the same revision: what was served before counts no more. */
export const definitionAfterFailover = defineCase(
  'subscription-at-run-time: another definition after a failover',
  async (env) => {
    const s = await stage(env)
    const { outbox, heard } = processOn(env)
    await outbox.subscriptions.create('hook', memory('lost'))
    const worker = await outbox.start(quiet)
    await s.change('a')
    await eventually(() => heard('lost').length === 1)
    await s.db.query(`update outbox.sink_settings set settings = '{"to": "kept"}' where subscription = 'hook'`)
    await s.db.query('update outbox.step set timeline = timeline + 1')
    await s.change('b')
    const sent = async () => {
      await s.change('c')
      return heard('kept').length > 0
    }
    await eventually(sent, { timeoutMs: 10_000, what: 'the definition that the database has' })
    await worker.stop()
  },
)

/** Refused, removed, and created again under a revision that was refused once. */
export const refusedThenMadeAnew = defineCase(
  'subscription-at-run-time: refused, removed and made anew',
  async (env) => {
    const s = await stage(env)
    const warned: string[] = []
    const { outbox, heard } = processOn(env, { warning: ({ code }) => void warned.push(code) })
    const worker = await outbox.start(quiet)
    await outbox.subscriptions.create('hook', memory('nowhere'))
    await eventually(() => warned.includes('HMD_SINK_KIND_FAILED'))
    await outbox.subscriptions.remove('hook', { ...by, confirm: 'hook' })
    // The worker has heard of it; and as a day later, nobody remembers which revisions there were.
    const beat = async () => Number((await s.db.query('select sum(xmin::text::bigint) as n from outbox.worker'))[0]?.n)
    for (let beats = 0, last = await beat(); beats < 2; beats++, last = await beat())
      await eventually(async () => (await beat()) !== last)
    await s.db.query('delete from outbox.removed')
    expect(await outbox.subscriptions.create('hook', memory('here')), 'the script: the revision that was refused').toBe(
      1,
    )
    await eventually(
      async () => {
        await s.change('a')
        return heard('here').length > 0
      },
      { timeoutMs: 10_000, what: 'the new one to be served' },
    )
    await worker.stop()
  },
)

export const cases = [
  definitionAfterFailover,
  refusedThenMadeAnew,
  declaredAtRunTime,
  storedAtRunTime,
  changedMeanwhile,
  withCommit,
  kindUnknown,
  factoryThrows,
  twoProcesses,
  shapes,
]
