// Options: complete and frozen, or every problem at once. Configuration cases of testing.md §7.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkOptions, secret } from '../../src/check-options.ts'
import { HermodError } from '../../src/errors.ts'
import { nearest } from '../../src/nearest.ts'
import { checkTogether, outboxOptions, subscriptionOptions, workerOptions } from '../../src/options.ts'

const sink = { name: 'null', deliver: async () => {} }
const subscription = { revision: 1, types: ['document.*'], sink }
const pool = { connect: async () => ({}), query: async () => ({}) }

interface Refusal {
  code: string
  message: string
  fields: string[]
}

function refusal(run: () => unknown): Refusal {
  try {
    run()
  } catch (error) {
    if (!(error instanceof HermodError)) throw error
    const problems = error.details?.problems as { field: string; says: string }[]
    for (const problem of problems) expect(problem.says).not.toBe('')
    return { code: error.code, message: error.message, fields: problems.map((p) => p.field) }
  }
  throw new Error('was accepted')
}

const subscribe = (changes: object, name = 'search') =>
  refusal(() => subscriptionOptions(name, { ...subscription, ...changes }))
const start = (changes: object) => refusal(() => workerOptions(changes))

describe('defaults', () => {
  it('of a subscription are those of the design', () => {
    const checked = subscriptionOptions('search', subscription)
    expect(checked).toEqual({
      name: 'search',
      ledger: false,
      revision: 1,
      types: ['document.*'],
      aggregates: undefined,
      sink,
      order: 'aggregate',
      coalesce: 'none',
      retry: { baseMs: 1000, factor: 2, capMs: 300_000, jitter: 0.2, attemptsMax: 6 },
      batch: { count: 100, bytes: 4_194_304 },
      lanes: 'all',
      priority: 0,
      rate: undefined,
      inFlightMax: undefined,
      callMs: 30_000,
      mode: 'live',
      from: 'now',
      load: undefined,
      loads: 'all',
      onDead: 'release',
    })
  })

  it('of a worker are those of the design', () => {
    expect(workerOptions()).toMatchObject({
      concurrency: 4,
      leaseMs: 45_000,
      pollMs: 1000,
      busyPollMs: 20,
      stopGraceMs: 25_000,
      listen: true,
      upkeep: true,
      retention: { eventDays: 7, attemptDays: 7, deliveryDays: 30, keyDays: 7 },
    })
  })

  it('are filled in group by group, and the result is frozen all the way', () => {
    const checked = subscriptionOptions('s', { ...subscription, retry: { attemptsMax: 2 } })
    expect(checked.retry).toMatchObject({ attemptsMax: 2, baseMs: 1000 })
    for (const part of [checked, checked.retry, checked.batch, checked.types]) {
      expect(Object.isFrozen(part)).toBe(true)
    }
    expect(outboxOptions({ pool }).clock).toBe(Date.now)
  })

  it('of a ledger come from its sink', () => {
    const mail = { ...sink, capabilities: { ledger: true } }
    expect(subscriptionOptions('mail', { ...subscription, sink: mail }).ledger).toBe(true)
    expect(subscribe({ sink: mail, coalesce: 'latest' }).fields).toEqual(['coalesce'])
  })

  it('of a start are normalised', () => {
    const from = (value: never) => subscriptionOptions('s', { ...subscription, from: value }).from
    expect(from({ position: '7' } as never)).toEqual({ position: 7n })
    expect(from({ time: '2026-11-15T00:00:00Z' } as never)).toEqual({
      time: new Date('2026-11-15T00:00:00Z'),
    })
    for (const bad of ['then', {}, { position: -1 }, { position: 1, time: new Date() }, { time: 'x' }]) {
      expect(subscribe({ from: bad }).fields).toEqual(['from'])
    }
  })
})

describe('configuration', () => {
  it('all problems at once, not one per start', () => {
    const { code, fields } = subscribe(
      {
        revision: 0,
        types: ['*.x', 'document.*', ''],
        sink: {},
        order: 'agregate',
        retry: { baseMs: -1, factr: 3 },
        batch: { count: 5001 },
        concurency: 3,
      },
      'No Name',
    )
    expect(code).toBe('HMD_OPTION_INVALID')
    expect(fields.sort()).toEqual([
      'batch.count',
      'concurency',
      'name',
      'order',
      'retry.baseMs',
      'retry.factr',
      'revision',
      'sink',
      'types[0]',
      'types[2]',
    ])
  })

  it('unknown key with the nearest known: HMD_OPTION_UNKNOWN', () => {
    const { code, message, fields } = start({ concurency: 3 })
    expect(code).toBe('HMD_OPTION_UNKNOWN')
    expect(message).toContain('did you mean concurrency?')
    expect(fields).toEqual(['concurency'])
    expect(subscribe({ coalesce: 'lastest' }).message).toContain('did you mean latest?')
  })

  it("negative, NaN, '10s' for a number", () => {
    for (const bad of [-1, Number.NaN, '10s', '10', 1.5, Number.POSITIVE_INFINITY, null, {}]) {
      expect(start({ leaseMs: bad }).fields).toEqual(['leaseMs'])
    }
    expect(start({ leaseMs: '10s' }).message).toBe(
      'start: leaseMs must be a whole number from 1000 to 3600000 (got "10s")',
    )
  })

  it("'' as secret: refused, and a secret is never echoed", () => {
    const check = (apiKey: unknown) => checkOptions('sink', { apiKey }, { apiKey: secret() })
    expect(check('s3cret').apiKey).toBe('s3cret')
    for (const bad of ['', '  ', undefined, null]) {
      expect(refusal(() => check(bad)).fields).toEqual(['apiKey'])
    }
    expect(refusal(() => check(['s3cret'])).message).not.toContain('s3cret')
  })

  it('leaseMs ≤ sink deadline', () => {
    const slow = subscriptionOptions('slow', { ...subscription, callMs: 45_000 })
    const quick = subscriptionOptions('quick', subscription)
    expect(refusal(() => checkTogether(workerOptions(), [quick, slow], 10))).toMatchObject({
      code: 'HMD_OPTION_INVALID',
      fields: ['slow.callMs'],
    })
    const only = workerOptions({ subscriptions: ['quick'] })
    expect(() => checkTogether(only, [quick, slow], 10)).not.toThrow()
  })

  it('pool smaller than concurrency + 2: HMD_POOL_TOO_SMALL', () => {
    expect(refusal(() => checkTogether(workerOptions(), [], 5)).code).toBe('HMD_POOL_TOO_SMALL')
    expect(() => checkTogether(workerOptions(), [], 6)).not.toThrow()
    expect(() => checkTogether(workerOptions(), [], undefined)).not.toThrow()
  })

  it('a worker for a subscription nobody defined: HMD_SUBSCRIPTION_UNKNOWN', () => {
    const search = subscriptionOptions('search', subscription)
    const worker = workerOptions({ subscriptions: ['serach'] })
    const { code, message } = refusal(() => checkTogether(worker, [search], 10))
    expect(code).toBe('HMD_SUBSCRIPTION_UNKNOWN')
    expect(message).toContain('did you mean search?')
  })

  it('one subscription name, two sinks: HMD_SUBSCRIPTION_CONFLICT', () => {
    const search = subscriptionOptions('search', subscription)
    const other = subscriptionOptions('search', { ...subscription, sink: async () => {} })
    const { code, fields } = refusal(() => checkTogether(workerOptions(), [search, other], 10))
    expect({ code, fields }).toEqual({ code: 'HMD_SUBSCRIPTION_CONFLICT', fields: ['search'] })
  })

  it('several of these at once: HMD_OPTION_INVALID with all of them', () => {
    const slow = subscriptionOptions('slow', { ...subscription, callMs: 60_000 })
    const { code, fields } = refusal(() => checkTogether(workerOptions(), [slow], 1))
    expect({ code, fields }).toEqual({
      code: 'HMD_OPTION_INVALID',
      fields: ['slow.callMs', 'pool.max'],
    })
  })

  it('something that is no pool, no listener, no options', () => {
    expect(refusal(() => outboxOptions({} as never)).fields).toEqual(['pool'])
    expect(refusal(() => outboxOptions(undefined as never)).fields).toEqual(['options'])
    expect(refusal(() => outboxOptions({ pool, lanes: 257 })).fields).toEqual(['lanes'])
    const listener = { stpe: () => {}, error: 7 }
    expect(refusal(() => outboxOptions({ pool, listener } as never)).fields).toEqual([
      'listener.error',
      'listener.stpe',
    ])
    expect(subscribe({ retry: { baseMs: 2000, capMs: 1000 } }).fields).toEqual(['retry.capMs'])
  })

  it('of any shape is judged, never crashes', () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (one, two) => {
        for (const given of [one, { types: one, sink: two, retry: one, from: two, rate: one }]) {
          expect(() => subscriptionOptions('s', given as never)).toThrow(HermodError)
        }
        expect(() => workerOptions({ leaseMs: one, retention: two, nam: 1 } as never)).toThrow(HermodError)
      }),
    )
  })
})

describe('the nearest name', () => {
  it('is close, or none', () => {
    const names = ['notBefore', 'key', 'type']
    expect(nearest('notBefor', names)).toBe('notBefore')
    expect(nearest('NOTBEFORE', names)).toBe('notBefore')
    expect(nearest('tpye', names)).toBe('type')
    expect(nearest('typ', names)).toBe('type')
    expect(nearest('payload', names)).toBeUndefined()
    expect(nearest('x'.repeat(1_000_000), names)).toBeUndefined()
  })
})
