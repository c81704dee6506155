// Whatever a destination says is hostile text. It is settled like any other answer: one attempt each, neighbours once.

import { expect } from 'vitest'
import { defineCase } from '../../../../../test/support/case.ts'
import { eventually } from '../../../../../test/support/eventually.ts'
import { holds } from '../../../../../test/support/invariants.ts'
import type { OutboxEvent } from '../../../src/event.ts'
import type { DeliveryContext } from '../../../src/sinks/sink.ts'
import { label, quiet, stage } from './stage.ts'

/** Every length around the cuts: of the fingerprint (200), of the message (500). */
const cuts = [...Array.from({ length: 16 }, (_, n) => 180 + n), 498, 499, 500]

const texts: Record<string, string> = {
  ...Object.fromEntries(cuts.map((at) => [`cut-${at}`, `${'a'.repeat(at)}😀 is not allowed`])),
  nul: 'a \0 in the text',
  lone: 'half a pair \ud83d, the other half \ude00',
  controls: 'bell \x07, escape \x1b[31m, record \x1e\x1f, C1 \x85',
  'not-utf8': Buffer.from([0x61, 0xff, 0xfe, 0xc3, 0x28]).toString('latin1'),
  large: `${'😀'.repeat(262_144)}`,
}

const neighbours = ['n1', 'n2', 'n3']

function counting() {
  const sent = new Map<string, number>()
  const add = ({ aggregateId }: OutboxEvent) => sent.set(aggregateId, (sent.get(aggregateId) ?? 0) + 1)
  return { sent, add }
}

export const hostileError = defineCase('hostile-error', async (env) => {
  const s = await stage(env)
  const ids = [...Object.keys(texts), ...neighbours]
  const { sent, add } = counting()
  const errors: unknown[] = []
  const sink = {
    name: 'hook',
    deliver: async (events: readonly OutboxEvent[]) =>
      events.map((event) => {
        add(event)
        const text = texts[event.aggregateId]
        // As a sink that makes its outcomes by hand would say it.
        const code = event.aggregateId.startsWith('cut') ? 'X' : text
        return text === undefined ? s.say.delivered() : { outcome: 'retry' as const, code, message: text }
      }),
  }
  const listener = { error: ({ error }: { error: unknown }) => void errors.push(error) }
  await s.change(...ids)
  const worker = await s.outbox(sink, { listener, subscription: { lanes: 1 } }).start(quiet)
  await eventually(async () => (await s.open()) === 0 && (await s.rows()).length === Object.keys(texts).length, {
    what: 'everything settled',
  })
  await worker.stop()
  expect(Object.fromEntries(sent), 'sent once each').toEqual(Object.fromEntries(ids.map((id) => [id, 1])))
  expect((await s.rows()).sort(), 'one attempt each').toEqual(
    Object.keys(texts)
      .map((id) => `${id}@1 retrying 1`)
      .sort(),
  )
  expect(errors, 'errors told').toEqual([])
  const stored = await s.db.query<{ aggregate_id: string; error: string; code: string; fingerprint: string }>(
    'select aggregate_id, error, code, fingerprint from outbox.delivery',
  )
  for (const { aggregate_id: id, error, code, fingerprint } of stored) {
    const kept = [error, code, fingerprint].join('')
    expect(kept, `what is kept of ${id}`).not.toMatch(/(?![\t\n\r])\p{Cc}|\p{Surrogate}/u)
    expect([error.length <= 500, code.length <= 100, fingerprint.length <= 200], `length of ${id}`).toEqual([
      true,
      true,
      true,
    ])
    expect(code, `the code of ${id} is the destination's`).not.toMatch(/^HMD_/)
  }
  await holds(s.db, 'I1', 'I3', 'I5')
})

/** A receipt, and a note of sending: both are read again as JSON. */
export const hostileReceipt = defineCase('hostile-error: of a ledger', async (env) => {
  const s = await stage(env)
  const ids = [...Object.keys(texts), ...neighbours]
  const { sent, add } = counting()
  const sink = {
    name: 'mail',
    capabilities: { ledger: true, itemsMax: 1 },
    deliver: async ([event]: readonly OutboxEvent[], context: DeliveryContext) => {
      const { aggregateId } = event as OutboxEvent
      const text = texts[aggregateId] ?? 'ok'
      await context.sending(event as OutboxEvent, { host: text, [text]: [text] })
      add(event as OutboxEvent)
      // Nobody knows whether it left: the note is all there is.
      if (!neighbours.includes(aggregateId)) throw new TypeError(text)
      return [{ outcome: 'delivered' as const, receipt: text, message: text }]
    },
  }
  await s.change(...ids)
  await s.outbox(sink).runOnce(quiet)
  expect(Object.fromEntries(sent), 'mails sent once each').toEqual(Object.fromEntries(ids.map((id) => [id, 1])))
  const state = (id: string) => (neighbours.includes(id) ? 'delivered' : 'unknown')
  expect((await s.rows()).sort(), 'their rows').toEqual(ids.map((id) => `${id}@1 ${state(id)} 1`).sort())
  const read = s.db.query(`select receipt::jsonb from outbox.delivery`).then((rows) => rows.length)
  expect(await read.catch((error: Error) => error.message), 'receipts and notes can be read').toBe(ids.length)
  const [{ most } = { most: 0 }] = await s.db.query<{ most: number }>(
    'select max(length(receipt::text)) as most from outbox.delivery',
  )
  expect(most, 'characters kept').toBeLessThan(20_000)
})

/** What a probe says: the breaker must be able to keep it. */
export const hostileProbe = defineCase('hostile-error: of a probe', async (env) => {
  const s = await stage(env)
  const errors: unknown[] = []
  let probes = 0
  let away = true
  const sink = {
    name: 'hook',
    deliver: async () => {},
    probe: async () => {
      probes++
      if (away) throw new Error(texts.nul)
    },
  }
  const listener = { error: ({ error }: { error: unknown }) => void errors.push(error) }
  // Nothing matches: there is no event to try with, so the sink itself is asked.
  const outbox = s.outbox(sink, { listener, subscription: { types: ['other.seen'] } })
  await outbox.runOnce(quiet)
  await s.db.query(`select outbox.hold('all', 'unavailable', 'away', 0, 1000, null)`)
  const worker = await outbox.start(quiet)
  const later = async (test: () => Promise<boolean> | boolean) =>
    eventually(
      async () => {
        await s.clock.advance(60_000)
        await s.change('a')
        return test()
      },
      { timeoutMs: 20_000 },
    )
  await later(() => probes >= 2)
  away = false
  await later(async () => (await s.db.query('select from outbox.subscription where held_cause is null')).length > 0)
  await worker.stop()
  expect(errors, 'errors told').toEqual([])
})

/** The database refuses what nobody thought of: the offender is set aside, its neighbours settle. */
export const settleRefused = defineCase('hostile-error: a settle that is refused', async (env) => {
  const s = await stage(env)
  await s.db.query(`alter table outbox.delivery add constraint unthought_of check (error not like '%poison%')`)
  const { sent, add } = counting()
  const warnings: string[] = []
  const sink = {
    name: 'hook',
    deliver: async (events: readonly OutboxEvent[]) =>
      events.map((event) => {
        add(event)
        if (event.aggregateId.startsWith('bad')) return s.say.retry({ code: 'X', message: 'poison' })
        return event.aggregateId.startsWith('ill') ? s.say.retry({ code: 'X', message: 'ill' }) : s.say.delivered()
      }),
  }
  const listener = { warning: ({ code }: { code: string }) => void warnings.push(code) }
  const ids = ['bad1', 'ill1', 'n1', 'bad2', 'ill2', 'n2', 'n3']
  await s.change(...ids)
  const worker = await s.outbox(sink, { listener: listener as never, subscription: { lanes: 1 } }).start(quiet)
  const calls = () => [...sent.values()].reduce((sum, count) => sum + count, 0)
  await eventually(async () => (await s.rows()).length === 4 || calls() > ids.length, {
    what: 'the offenders set aside',
  })
  await worker.stop()
  expect(Object.fromEntries(sent), 'sent once each').toEqual(Object.fromEntries(ids.map((id) => [id, 1])))
  const rows = await s.db.query<{ says: string }>(
    `select format('%s %s %s %s', aggregate_id, state, attempts, code) as says from outbox.delivery order by pos`,
  )
  expect(
    rows.map(({ says }) => says),
    'one attempt each, the offenders by code',
  ).toEqual([
    'bad1 retrying 1 HMD_SETTLE_REFUSED',
    'ill1 retrying 1 X',
    'bad2 retrying 1 HMD_SETTLE_REFUSED',
    'ill2 retrying 1 X',
  ])
  expect(warnings, 'the listener is told').toEqual(['HMD_SETTLE_REFUSED'])
  await holds(s.db, 'I1', 'I3', 'I5')
})

/** The database cannot write for a while: what was sent is remembered, and is not sent again meanwhile. */
export const settlePauses = defineCase('hostile-error: a settle that fails for a while', async (env) => {
  const s = await stage(env)
  await s.db.query(`create sequence public.settles;
    create function full_disk() returns trigger language plpgsql as $$ begin
      if nextval('public.settles') <= 3 then raise exception using errcode = '53100', message = 'disk full'; end if;
      return null;
    end $$;
    create trigger full_disk after insert on outbox.attempt for each statement execute function full_disk()`)
  const sent: string[] = []
  const sink = {
    name: 'hook',
    deliver: async (events: readonly OutboxEvent[]) => {
      sent.push(...events.map(label))
    },
  }
  await s.change('a', 'b', 'c')
  const worker = await s.outbox(sink, { subscription: { lanes: 1 } }).start(quiet)
  await eventually(async () => (await s.open()) === 0, { what: 'settled in the end' })
  await worker.stop()
  expect(sent, 'sent once each').toEqual(['a@1', 'b@1', 'c@1'])
})
