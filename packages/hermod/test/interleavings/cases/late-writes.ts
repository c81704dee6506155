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

/** `a@2` is out, unheard: how the lane of its owner ends differs; the next owner must have the last word all the same. */
async function lateAfter(s: Stage, end: (old: Worker) => Promise<void>): Promise<void> {
  const applied: string[] = []
  const late = gate()
  const out = gate()
  const deaf = destination(s, applied, (event) => {
    if (label(event) !== 'a@2' || applied.includes('a@3')) return undefined
    out.open()
    return late.opened
  })
  await s.change('a')
  const subscription = { callMs }
  const old = await s.outbox(deaf, { subscription }).start({ ...options, stopGraceMs: 0 })
  await eventually(() => applied.length === 1)
  await s.change('a')
  await out.opened
  await end(old)
  const next = await s
    .outbox(
      destination(s, applied, () => undefined),
      { subscription },
    )
    .start(options)
  await eventually(() => applied.includes('a@2'), { timeoutMs: 15_000 })
  await s.change('a')
  await eventually(() => applied.includes('a@3'))
  late.open()
  await eventually(() => applied.at(-1) === 'a@2', { what: 'the old write to land' })
  await eventually(async () => (await s.held()) === 0, { what: 'the lanes to be given back', timeoutMs: 20_000 })
  await s.clock.advance(callMs)
  await eventually(async () => (await s.db.query(AGAIN)).length === 0, { what: 'the second send', timeoutMs: 20_000 })
  expect(applied.at(-1), 'the last word').toBe('a@3')
  await old.stop()
  await next.stop()
}

type Worker = Awaited<ReturnType<ReturnType<Stage['outbox']>['start']>>

/** The worker stops; its sink does not hear that the grace period is over. */
export const lateAfterStop = defineCase('late-write-after-takeover: of a worker that has stopped', async (env) => {
  const s = await stage(env)
  await lateAfter(s, (old) => old.stop())
})

/** A failover voids every lease; the old owner's call is still under way. */
export const lateAfterFailover = defineCase('late-write-after-takeover: after a failover', async (env) => {
  const s = await stage(env)
  await lateAfter(s, async (old) => {
    await s.db.query('update outbox.step set timeline = timeline + 1')
    await s.step()
    await old.stop()
  })
})

/** A dry run voids every lease as well. */
export const lateAfterDryRun = defineCase('late-write-after-takeover: after a dry run', async (env) => {
  const s = await stage(env)
  await lateAfter(s, async (old) => {
    const desk = s.outbox(
      destination(s, [], () => undefined),
      { subscription: { callMs } },
    )
    await desk.mode('all', 'dry-run', { actor: 'me', reason: 'to see' })
    await old.stop()
    await desk.mode('all', 'live', { actor: 'me', reason: 'seen', from: 'where-it-began' })
  })
})

/** A lane whose former owner vanished: what it may have been sending is sent again one call deadline after the claim. */
async function vanished(s: Stage, lane: number): Promise<void> {
  await s.db.query(
    `update outbox.lane set owner = 'ghost', lease_until = outbox.clock() - interval '1 second' where lane = $1`,
    [lane],
  )
}

const againOpen = async (s: Stage) =>
  (await s.db.query<{ n: number }>('select count(*)::int as n from outbox.lane where again_at is not null'))[0]?.n

/** What was delivered beyond the cursor is newer than what a second send knows: that waits until the cursor has passed it. */
export const againBeyondCursor = defineCase('late-write-after-takeover: delivered beyond the cursor', async (env) => {
  const s = await stage(env)
  const [y, z] = (await s.inLane(5, 2)) as [string, string]
  const applied: string[] = []
  let away = true
  const sink = {
    name: 'keeper',
    async deliver(events: readonly OutboxEvent[]) {
      return events.map((event) => {
        if (away && label(event) === `${y}@2`) return s.say.unavailable()
        applied.push(label(event))
        return s.say.delivered()
      })
    },
  }
  const subscription = { callMs: 1_000 }
  await s.change(z)
  await s.outbox(sink, { subscription }).runOnce(options)
  await vanished(s, 5)
  await s.change(z)
  const worker = await s.outbox(sink, { subscription }).start(options)
  await eventually(() => applied.includes(`${z}@2`))
  await s.change(y, y, z)
  await eventually(() => applied.includes(`${z}@3`))
  const dueAtMs = performance.now() + 1_500
  await eventually(() => performance.now() > dueAtMs)
  away = false
  await s.clock.advance(6_000)
  await eventually(() => applied.includes(`${y}@2`))
  await eventually(async () => (await againOpen(s)) === 0, { timeoutMs: 10_000 })
  await worker.stop()
  expect(applied.filter((one) => one.startsWith(z)).at(-1), 'the last word').toBe(`${z}@3`)
})

/** A destination that refuses a repeat is not asked for ever. */
export const againRefused = defineCase(
  'late-write-after-takeover: a destination that refuses a repeat',
  async (env) => {
    const s = await stage(env)
    const [a, b] = (await s.inLane(5, 2)) as [string, string]
    const sent: string[] = []
    const sink = {
      name: 'keeper',
      async deliver(events: readonly OutboxEvent[]) {
        return events.map((event) => {
          sent.push(label(event))
          return sent.filter((one) => one === label(event)).length > 1 && event.aggregateId === a
            ? s.say.retry({ message: '409 I have that' })
            : s.say.delivered()
        })
      },
    }
    const warned: string[] = []
    const subscription = { callMs: 200, retry: { attemptsMax: 3, baseMs: 10, capMs: 20 } }
    await s.change(a)
    await s.outbox(sink, { subscription }).runOnce(options)
    await vanished(s, 5)
    await s.change(a, b)
    const listener = { warning: ({ code }: { code: string }) => void warned.push(code) }
    const worker = await s.outbox(sink, { subscription, listener }).start(options)
    await eventually(async () => sent.includes(`${b}@1`) && (await againOpen(s)) === 0, {
      timeoutMs: 10_000,
      what: 'the end of the second send',
    })
    await worker.stop()
    expect(
      sent.filter((one) => one === `${a}@2`),
      'sent once, and three times again',
    ).toHaveLength(4)
    expect(
      sent.filter((one) => one === `${b}@1`),
      'what was taken is not sent once more',
    ).toHaveLength(2)
    expect(warned).toContain('HMD_SECOND_SEND_REFUSED')
    expect(await s.rows(), 'rows').toEqual([])
  },
)
