// Ledgers: a message that may have gone out is never sent again unasked, and one that certainly did
// not is never lost. A crash is a process whose statements no longer reach the database.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import type { OutboxEvent } from '../../../src/event.ts'
import type { Outcome } from '../../../src/sinks/outcome.ts'
import type { DeliveryContext } from '../../../src/sinks/sink.ts'
import { gate, label, quiet, type Stage, stage, WatchedPool } from './stage.ts'

type Step = 'before sending' | 'before the dot' | 'after the dot' | 'after 250'
type At = (step: Step, event: OutboxEvent) => void

/** A mail server's truth: what it accepted, by label. */
function mailbox(s: Stage, at: At = () => {}) {
  const accepted: string[] = []
  const send = async (event: OutboxEvent, context: DeliveryContext): Promise<Outcome> => {
    at('before sending', event)
    await context.sending(event, { host: 'mx' })
    at('before the dot', event)
    accepted.push(label(event))
    at('after the dot', event)
    at('after 250', event)
    return s.say.delivered('queued')
  }
  const sink = {
    name: 'mail',
    capabilities: { ledger: true },
    deliver: async (events: readonly OutboxEvent[], context: DeliveryContext) => {
      const outcomes: Outcome[] = []
      for (const event of events) outcomes.push(await send(event, context))
      return outcomes
    },
  }
  return { sink, accepted }
}

/** As a connection that is gone: nobody hears of it. */
class Crash extends Error {
  readonly code = '08006'
}

/** Runs a worker that dies at `step` of the first message; its lease then runs out. */
async function dies(s: Stage, step: Step): Promise<string[]> {
  const watched = new WatchedPool(s.db.pool)
  let dead = false
  const { sink, accepted } = mailbox(s, (now) => {
    if (now !== step || dead) return
    dead = true
    throw new Crash('gone')
  })
  watched.before = () => {
    if (dead) throw new Crash('a dead process sends nothing')
  }
  await s
    .outbox(sink, { pool: watched })
    .runOnce(quiet)
    .catch(() => {})
  expect(dead, 'the script: the worker died').toBe(true)
  await s.clock.advance(60_000)
  return accepted
}

export const ledger = defineCase('ledger', async (env) => {
  const s = await stage(env)
  const survivor = mailbox(s)
  await s.outbox(survivor.sink).runOnce(quiet)
  await s.change('early')
  const early = await dies(s, 'before sending')
  await s.outbox(survivor.sink).runOnce(quiet)
  expect([early, survivor.accepted], 'crash before sending').toEqual([[], ['early@1']])
  for (const step of ['after the dot', 'after 250'] as const) {
    const id = step.replaceAll(' ', '-')
    await s.change(id)
    expect(await dies(s, step)).toEqual([`${id}@1`])
    await s.outbox(survivor.sink).runOnce(quiet)
    expect(survivor.accepted, `sent again after a crash ${step}`).not.toContain(`${id}@1`)
    expect(await s.rows(), `crash ${step}`).toContain(`${id}@1 unknown 1`)
  }
  await s.outbox(survivor.sink).runOnce(quiet)
  expect(await s.rows(), 'receipts stay').toContain('early@1 delivered 1')
  await holds(s.db, 'I8')
})

/** Five in one batch; one is in flight when the worker dies. */
export const ledgerCrashMidBatch = defineCase('ledger-crash-mid-batch', async (env) => {
  const s = await stage(env)
  const ids = await s.inLane(4, 5)
  await s.change(...ids)
  const watched = new WatchedPool(s.db.pool)
  let dead = false
  const first = mailbox(s, (step, event) => {
    if (event.aggregateId !== ids[2] || step !== 'after the dot') return
    dead = true
    throw new Crash('gone')
  })
  watched.before = () => {
    if (dead) throw new Crash('a dead process sends nothing')
  }
  const single = { itemsMax: 1, ledger: true }
  await s
    .outbox({ ...first.sink, capabilities: single }, { pool: watched })
    .runOnce(quiet)
    .catch(() => {})
  await s.clock.advance(60_000)
  const second = mailbox(s)
  await s.outbox({ ...second.sink, capabilities: single }).runOnce(quiet)
  const both = [...first.accepted, ...second.accepted]
  expect(new Set(both).size, 'mails sent twice').toBe(both.length)
  const unknown = (await s.rows()).filter((row) => row.includes('unknown'))
  expect(unknown.length, 'messages in flight').toBeLessThanOrEqual(3)
  expect(unknown, 'the one in flight').toContain(`${ids[2]}@1 unknown 1`)
  expect(
    (await s.rows()).filter((row) => row.includes('pending')),
    'left behind',
  ).toEqual([])
  expect([...second.accepted].sort(), 'those not begun').toEqual([`${ids[3]}@1`, `${ids[4]}@1`].sort())
  await holds(s.db, 'I8')
})

/** What the sink says itself: not sent, refused for good, or nobody knows. */
export const ledgerOutcomes = defineCase('ledger: each answer', async (env) => {
  const s = await stage(env)
  const refused = () => Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
  const cases: Record<string, { before?: () => Error; after?: () => Error; state: string }> = {
    'throws-before': { before: () => new TypeError('template'), state: 'retrying 1' },
    'refused-after': { after: refused, state: 'pending 0' },
    'cut-after': {
      after: () => Object.assign(new Error('cut'), { code: 'ECONNRESET' }),
      state: 'unknown 1',
    },
    'throws-after': { after: () => new TypeError('oops'), state: 'unknown 1' },
  }
  for (const [id, { before, after, state }] of Object.entries(cases)) {
    let calls = 0
    const sink = {
      name: 'mail',
      capabilities: { ledger: true },
      deliver: async ([event]: readonly OutboxEvent[], context: DeliveryContext) => {
        calls++
        if (before) throw before()
        await context.sending(event as OutboxEvent)
        if (after) throw after()
      },
    }
    await s.change(id)
    await s.outbox(sink).runOnce({ ...quiet, deadlineMs: 3_000 })
    expect(
      (await s.rows()).find((row) => row.startsWith(id)),
      id,
    ).toBe(`${id}@1 ${state}`)
    expect(calls, `calls of ${id}`).toBeLessThanOrEqual(2)
    await s.db.query(`update outbox.delivery set state = 'discarded', next_attempt_at = null`)
    await s.db.query('select outbox.recover($1)', ['all'])
  }
})

/** A sink that wakes up after it was given up cannot send what is settled by now. */
export const ledgerZombie = defineCase('ledger: a call that was given up', async (env) => {
  const s = await stage(env)
  const refusals: string[] = []
  let sent = 0
  let wake = (): void => {}
  const asleep = new Promise<void>((resolve) => {
    wake = resolve
  })
  const sink = {
    name: 'mail',
    capabilities: { ledger: true },
    deliver: async ([event]: readonly OutboxEvent[], context: DeliveryContext) => {
      await asleep
      await context.sending(event as OutboxEvent).catch((error) => {
        refusals.push(error.code)
        throw error
      })
      sent++
    },
  }
  await s.change('a')
  await s.outbox(sink, { subscription: { callMs: 50 } }).runOnce(quiet)
  expect(await s.rows()).toEqual(['a@1 retrying 1'])
  wake()
  await eventually(() => refusals.length > 0)
  expect([refusals, sent], 'sent by a call that was given up').toEqual([['HMD_LEASE_LOST'], 0])
})

/** The answer of a ledger's settle is lost: nothing stays in `sending`. */
export const ledgerSettleCut = defineCase('settle-commit-cut: ledger', async (env) => {
  const s = await stage(env)
  const { sink, accepted } = mailbox(s)
  const watched = new WatchedPool(s.db.pool)
  let cuts = 0
  watched.before = (text) => {
    if (text.includes('outbox.settle(') && cuts++ === 0) throw Object.assign(new Error('cut'), { code: '08006' })
  }
  await s.change('a')
  const worker = await s.outbox(sink, { pool: watched }).start(quiet)
  await eventually(async () => (await s.rows())[0] === 'a@1 unknown 1')
  await s.change('b')
  await eventually(async () => (await s.rows())[1] === 'b@1 delivered 1')
  await worker.stop()
  expect(accepted).toEqual(['a@1', 'b@1'])
  await holds(s.db, 'I8')
})

/** One event of an aggregate at a time, in order; many batches; each sent once. */
export const ledgerFlow = defineCase('ledger: many, in order', async (env) => {
  const s = await stage(env)
  const { sink, accepted } = mailbox(s)
  await s.bulk(500, `case when n % 7 = 0 then 'other.seen' else 'doc.changed' end`, `'d' || n % 50`)
  const outbox = s.outbox(sink, { subscription: { types: ['doc.*'], batch: { count: 10 } } })
  await outbox.runOnce(quiet)
  expect(accepted.length, 'mails').toBe(500 - Math.floor(500 / 7))
  const [counts] = await s.db.query(
    `select count(*)::int as rows, count(*) filter (where state = 'delivered')::int as delivered from outbox.delivery`,
  )
  expect(counts).toEqual({ rows: accepted.length, delivered: accepted.length })
  await holds(s.db, 'I8')
})

/** A mail sink of a few lines, whose third effect breaks the call off. */
function breaking(breakOff: (event: OutboxEvent, context: DeliveryContext) => unknown) {
  const sent: string[] = []
  const sink = {
    name: 'mail',
    capabilities: { ledger: true },
    deliver: async (events: readonly OutboxEvent[], context: DeliveryContext): Promise<never> => {
      for (const [index, event] of events.entries()) {
        await context.sending(event)
        if (index === 2) return (await breakOff(event, context)) as never
        sent.push(label(event))
      }
      return undefined as never
    },
  }
  return { sink, sent }
}

const refusedConnection = () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })

const breaks: Record<string, { breakOff: Parameters<typeof breaking>[0]; third: string }> = {
  'refused connection': {
    breakOff: () => {
      throw refusedConnection()
    },
    // Nobody has answered for the first two, so the error may be about any of them.
    third: 'unknown 1',
  },
  'wrong credentials': {
    breakOff: () => {
      throw Object.assign(new Error('535 refused'), { status: 401 })
    },
    third: 'unknown 1',
  },
  'cut connection': {
    breakOff: () => {
      throw Object.assign(new Error('cut'), { code: 'ECONNRESET' })
    },
    third: 'unknown 1',
  },
  'wrong number of outcomes': { breakOff: () => [], third: 'unknown 1' },
  'a handle': { breakOff: () => ({ parked: 'task' }), third: 'unknown 1' },
  'no known outcome': { breakOff: () => [1, 2, 3], third: 'unknown 1' },
  'a deadline': {
    breakOff: (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
      }),
    third: 'unknown 1',
  },
  'an abort that is answered with another error': {
    breakOff: (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(refusedConnection()))
      }),
    third: 'unknown 1',
  },
}

/** The third of three effects breaks the call off: the first two have left, and are not sent again. */
export const ledgerBrokeOff = defineCase('ledger-broke-off', async (env) => {
  const s = await stage(env)
  for (const [name, { breakOff, third }] of Object.entries(breaks)) {
    const ids = ['x', 'y', 'z'].map((id) => `${name.replaceAll(' ', '-')}-${id}`)
    await s.change(...ids)
    const first = breaking(breakOff)
    const subscription = { lanes: 1 as const, callMs: 300 }
    await s.outbox(first.sink, { subscription }).runOnce({ ...quiet, deadlineMs: 3_000 })
    const rows = (await s.rows()).filter((row) => ids.some((id) => row.startsWith(id)))
    expect(rows, `what is known after ${name}`).toEqual([
      `${ids[0]}@1 unknown 1`,
      `${ids[1]}@1 unknown 1`,
      `${ids[2]}@1 ${third}`,
    ])
    await s.db.query('select outbox.recover($1)', ['all'])
    const second = mailbox(s)
    await s.outbox(second.sink, { subscription }).runOnce(quiet)
    expect(second.accepted, `sent after ${name}`).toEqual(third.startsWith('pending') ? [`${ids[2]}@1`] : [])
  }
  await holds(s.db, 'I8')
})

/** What the sink has said of an event before it broke off stands. */
export const ledgerAnswered = defineCase('ledger-broke-off: what was answered stands', async (env) => {
  const s = await stage(env)
  const ids = ['x', 'y', 'z']
  await s.change(...ids)
  const sink = {
    name: 'mail',
    capabilities: { ledger: true },
    deliver: async (events: readonly OutboxEvent[], context: DeliveryContext) => {
      for (const [index, event] of events.entries()) {
        await context.sending(event)
        if (index === 2) throw refusedConnection()
        context.answered(event, index === 0 ? s.say.delivered('250 ok') : s.say.rejected({ code: '550' }))
      }
    },
  }
  await s.outbox(sink, { subscription: { lanes: 1 } }).runOnce({ ...quiet, deadlineMs: 2_000 })
  expect(await s.rows(), 'what was answered stands').toEqual(['x@1 delivered 1', 'y@1 dead 1', 'z@1 pending 0'])
})

/** Several effects at once: nobody can say whose error it is. */
export const ledgerAtOnce = defineCase('ledger-broke-off: effects at once', async (env) => {
  const s = await stage(env)
  await s.change('x', 'y', 'z')
  const sink = {
    name: 'mail',
    capabilities: { ledger: true },
    deliver: async (events: readonly OutboxEvent[], context: DeliveryContext) => {
      const send = async (event: OutboxEvent) => {
        await context.sending(event)
        if (event.aggregateId === 'x') throw refusedConnection()
      }
      const all = await Promise.allSettled(events.map(send))
      for (const one of all) if (one.status === 'rejected') throw one.reason
    },
  }
  await s.outbox(sink, { subscription: { lanes: 1 } }).runOnce({ ...quiet, deadlineMs: 2_000 })
  expect(await s.rows(), 'effects at once').toEqual(['x@1 unknown 1', 'y@1 unknown 1', 'z@1 unknown 1'])
})

/** The database is away when the third is recorded: that error says nothing about the second. */
export const ledgerUnrecorded = defineCase('ledger-broke-off: sending could not be recorded', async (env) => {
  const s = await stage(env)
  await s.change('x', 'y', 'z')
  const watched = new WatchedPool(s.db.pool)
  let recorded = 0
  watched.before = (text) => {
    if (text.includes('outbox.sending(') && ++recorded === 3) throw refusedConnection()
  }
  const { sink, accepted } = mailbox(s)
  const outbox = s.outbox(sink, { pool: watched, subscription: { lanes: 1 } })
  await outbox.runOnce({ ...quiet, deadlineMs: 2_000 })
  expect(accepted, 'sent').toEqual(['x@1', 'y@1'])
  expect(await s.rows(), 'an error of the record').toEqual(['x@1 unknown 1', 'y@1 unknown 1', 'z@1 pending 0'])
})

/** An operator discards a message whose call is under way, before its turn: it never leaves, and the others do. */
export const discardedInCall = defineCase('ledger-discard-in-call', async (env) => {
  const s = await stage(env)
  const ids = (await s.inLane(5, 4)) as [string, string, string, string]
  const [first, , third] = ids
  const [out, go] = [gate(), gate()]
  const { sink, accepted } = mailbox(s)
  const answering = {
    ...sink,
    deliver: async (events: readonly OutboxEvent[], context: DeliveryContext) => {
      for (const event of events) {
        const [outcome] = await sink.deliver([event], context)
        context.answered(event, outcome as Outcome)
        if (event.aggregateId !== first) continue
        out.open()
        await go.opened
      }
      return undefined as never
    },
  }
  await s.change(...ids)
  const outbox = s.outbox(answering)
  const worker = await outbox.start({ ...quiet, concurrency: 1 })
  await out.opened
  const [row] = await s.db.query<{ pos: string }>('select pos::text from outbox.delivery where aggregate_id = $1', [
    third,
  ])
  await outbox.discard('all', row?.pos as string, { actor: 'me', reason: 'not wanted' })
  go.open()
  const settled = ids.map((id) => `${id}@1 ${id === third ? 'discarded 0' : 'delivered 1'}`)
  await eventually(async () => expect(await s.rows()).toEqual(settled), { timeoutMs: 10_000 })
  await s.clock.advance(60_000)
  await s.change(first)
  await eventually(() => accepted.includes(`${first}@2`))
  await worker.stop()
  expect(
    accepted.filter((one) => one.startsWith(third)),
    'a discarded message',
  ).toEqual([])
  expect(new Set(accepted).size, 'sent twice').toBe(accepted.length)
})

/** The same, and the first answer is that the server is away: the rows of the call become pending again, but for that one. */
export const discardedInOutage = defineCase('ledger-discard-in-call: the destination is away', async (env) => {
  const s = await stage(env)
  const ids = (await s.inLane(5, 3)) as [string, string, string]
  const [, , third] = ids
  const [out, go] = [gate(), gate()]
  let away = true
  const { sink, accepted } = mailbox(s)
  const flaky = {
    ...sink,
    deliver: async (events: readonly OutboxEvent[], context: DeliveryContext) => {
      if (!away) return sink.deliver(events, context)
      out.open()
      await go.opened
      return events.map(() => s.say.unavailable())
    },
  }
  await s.change(...ids)
  const outbox = s.outbox(flaky)
  const worker = await outbox.start({ ...quiet, concurrency: 1 })
  await out.opened
  const [row] = await s.db.query<{ pos: string }>('select pos::text from outbox.delivery where aggregate_id = $1', [
    third,
  ])
  await outbox.discard('all', row?.pos as string, { actor: 'me', reason: 'not wanted' })
  go.open()
  await eventually(
    async () => (await s.db.query('select 1 from outbox.subscription where held_cause is not null')).length > 0,
  )
  away = false
  await s.clock.advance(6_000)
  await eventually(() => accepted.length === 2)
  await s.change(ids[0])
  await eventually(() => accepted.includes(`${ids[0]}@2`))
  await worker.stop()
  expect(
    accepted.filter((one) => one.startsWith(third)),
    'a discarded message',
  ).toEqual([])
})
