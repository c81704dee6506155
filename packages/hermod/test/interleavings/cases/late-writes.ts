// A destination without versions takes whatever comes last. What a former owner, or a call that an
// operator has given up, still has under way must not be that.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import type { OutboxEvent } from '../../../src/event.ts'
import { gate, label, quiet, type Stage, stage } from './stage.ts'

/** A lease that ends, and a second send that comes due, only when the script moves the database's clock. */
const leaseMs = 600_000
const callMs = 300_000
const options = { ...quiet, concurrency: 1, leaseMs }

/** Lanes of which something is to be sent again. */
const AGAIN = `select from outbox.lane where again_at is not null`

/** Keeps every state it is given, in the order it applies them; may be slow, and then does not hear that its call is over. */
function destination(s: Stage, applied: string[], slow: (event: OutboxEvent) => Promise<void> | undefined) {
  return {
    name: 'keeper',
    capabilities: { keepsOrder: true },
    async deliver(events: readonly OutboxEvent[]) {
      const outcomes = []
      for (const event of events) {
        await slow(event)
        applied.push(label(event))
        outcomes.push(s.say.delivered())
      }
      return outcomes
    },
  }
}

export const lateWrite = defineCase('late-write-after-takeover', async (env) => {
  const s = await stage(env)
  const applied: string[] = []
  const late = gate()
  const out = gate()
  const frozen = destination(s, applied, (event) => {
    if (label(event) !== 'a@2') return undefined
    out.open()
    return late.opened
  })
  const healthy = destination(s, applied, () => undefined)
  await s.change('a')
  const old = await s.outbox(frozen, { subscription: { callMs } }).start(options)
  await eventually(() => applied.length === 1)
  await s.change('a')
  await out.opened
  await s.clock.advance(leaseMs)
  const next = await s.outbox(healthy, { subscription: { callMs } }).start(options)
  await eventually(() => applied.includes('a@2'))
  await s.change('a', 'b')
  await eventually(() => applied.includes('a@3') && applied.includes('b@1'))
  late.open()
  await eventually(() => applied.at(-1) === 'a@2', { what: 'the old write to land' })
  await eventually(async () => (await s.held()) === 0, { what: 'the lanes to be given back', timeoutMs: 20_000 })
  await s.clock.advance(callMs)
  await eventually(async () => (await s.db.query(AGAIN)).length === 0, { what: 'the second send', timeoutMs: 20_000 })
  expect(applied.at(-1), 'the last word').toBe('a@3')
  await old.stop()
  await next.stop()
  expect(
    applied.filter((one) => one === 'b@1'),
    'what the former owner never had',
  ).toEqual(['b@1'])
  await holds(s.db, 'I8')
})

export const discardInFlight = defineCase('discard-in-flight', async (env) => {
  const s = await stage(env)
  const [a, other] = [(await s.inLane(2, 1))[0], (await s.inLane(7, 1))[0]] as [string, string]
  const applied: string[] = []
  const out = gate()
  const late = gate()
  const keeper = destination(s, applied, () => undefined)
  const sink = {
    ...keeper,
    deliver: async (events: readonly OutboxEvent[]) => {
      const [first] = events as [OutboxEvent]
      if (label(first) !== `${a}@1`) return keeper.deliver(events)
      if (first.attempt === 1) return events.map(() => s.say.retry())
      out.open()
      await late.opened
      return keeper.deliver(events)
    },
  }
  await s.change(a)
  const one = s.outbox(sink, { subscription: { callMs: 20_000 } })
  const first = await one.start(options)
  await eventually(async () => (await s.rows()).length === 1)
  await s.clock.advance(1_100)
  await out.opened
  await s.change(a)
  const second = await s.outbox(sink, { subscription: { callMs: 20_000 } }).start(options)
  const [row] = await s.db.query<{ pos: string }>('select pos::text from outbox.delivery')
  await one.discard('all', row?.pos as string, { actor: 'me', reason: 'not wanted' })
  for (const version of [1, 2, 3]) {
    await s.change(other)
    await eventually(() => applied.includes(`${other}@${version}`))
  }
  expect(applied, 'sent before the call has ended').not.toContain(`${a}@2`)
  late.open()
  await eventually(() => applied.includes(`${a}@2`), { timeoutMs: 15_000 })
  await first.stop()
  await second.stop()
  expect(applied.filter((one) => one.startsWith(a)).at(-1), 'the last word').toBe(`${a}@2`)
  expect(await s.rows()).toEqual([`${a}@1 discarded 1`])
})
