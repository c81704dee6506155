// The sink contract: outcomes, what HTTP and the network mean by default, broken sinks.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OutboxEvent } from '../../src/event.ts'
import {
  asSink,
  capabilitiesOf,
  delivered,
  fingerprint,
  normaliseOutcomes,
  type Outcome,
  outcomeNames,
  outcomeOfError,
  outcomeOfStatus,
  rejected,
  retry,
  superseded,
  unavailable,
  unknown,
} from '../../src/sinks/sink.ts'

const events = [{}, {}, {}] as unknown as OutboxEvent[]
const nowMs = Date.parse('2026-11-15T12:00:00Z')
const named = (code: string) => Object.assign(new Error(`it failed: ${code}`), { code })

describe('an outcome', () => {
  it('is a plain frozen value', () => {
    expect(retry({ afterMs: 5, code: 'x', status: 408 })).toEqual({
      outcome: 'retry',
      afterMs: 5,
      code: 'x',
      status: 408,
    })
    expect(Object.isFrozen(retry())).toBe(true)
    expect(delivered()).toBe(delivered())
    expect(delivered('id-1')).toEqual({ outcome: 'delivered', receipt: 'id-1' })
    expect(superseded()).toEqual({ outcome: 'superseded' })
  })

  it('is bounded and can be stored whatever the far side sent', () => {
    const huge = rejected({ message: 'x'.repeat(10_000), excerpt: 'a\0\ud800', afterMs: 1e12 })
    expect(huge.message).toHaveLength(500)
    expect(huge.excerpt).toBe('a\ufffd\ufffd')
    expect(huge.afterMs).toBe(3_600_000)
    expect(retry({ afterMs: -5, status: Number.NaN })).toEqual({ outcome: 'retry' })
    expect(rejected({ message: `${'x'.repeat(498)}😀x` }).message).toMatch(/x\ufffd…$/)
  })
})

describe('HTTP answers', () => {
  const table: [status: number, single: string, batch: string][] = [
    [200, 'delivered', 'delivered'],
    [204, 'delivered', 'delivered'],
    [301, 'misconfigured', 'misconfigured'],
    [304, 'misconfigured', 'misconfigured'],
    [400, 'rejected', 'split'],
    [401, 'misconfigured', 'misconfigured'],
    [402, 'misconfigured', 'misconfigured'],
    [403, 'misconfigured', 'misconfigured'],
    [404, 'misconfigured', 'misconfigured'],
    [405, 'rejected', 'split'],
    [406, 'rejected', 'split'],
    [407, 'misconfigured', 'misconfigured'],
    [408, 'retry', 'retry'],
    [409, 'retry', 'retry'],
    [410, 'misconfigured', 'misconfigured'],
    [413, 'rejected', 'split'],
    [415, 'rejected', 'split'],
    [418, 'rejected', 'split'],
    [422, 'rejected', 'split'],
    [425, 'retry', 'retry'],
    [429, 'unavailable', 'unavailable'],
    [500, 'unavailable', 'unavailable'],
    [501, 'misconfigured', 'misconfigured'],
    [502, 'unavailable', 'unavailable'],
    [503, 'unavailable', 'unavailable'],
    [504, 'unavailable', 'unavailable'],
    [505, 'misconfigured', 'misconfigured'],
    [507, 'unavailable', 'unavailable'],
    [599, 'unavailable', 'unavailable'],
    [100, 'unavailable', 'unavailable'],
    [Number.NaN, 'unavailable', 'unavailable'],
  ]
  for (const [status, single, batch] of table) {
    it(`${status}: ${single}${single === batch ? '' : `, in bulk ${batch}`}`, () => {
      expect(outcomeOfStatus(status).outcome).toBe(single)
      expect(outcomeOfStatus(status, { items: 2 }).outcome).toBe(batch)
    })
  }

  it('429 and 503 honour Retry-After', () => {
    const options = { retryAfter: '30', nowMs }
    expect(outcomeOfStatus(429, options)).toMatchObject({ afterMs: 30_000, status: 429 })
    expect(outcomeOfStatus(503, { ...options, retryAfter: '99999999999' }).afterMs).toBe(3_600_000)
    for (const retryAfter of ['-5', 'soon', 'Sun, 15 Nov 2026 11:00:00 GMT', null]) {
      expect(outcomeOfStatus(429, { retryAfter, nowMs }).afterMs).toBeUndefined()
    }
  })

  it('500 of a ledger sink: unknown', () => {
    expect(outcomeOfStatus(500, { ledger: true }).outcome).toBe('unknown')
    expect(outcomeOfStatus(503, { ledger: true }).outcome).toBe('unavailable')
  })
})

describe('thrown errors', () => {
  const table: [code: string, outcome: string, ledger: string][] = [
    ['ECONNREFUSED', 'unavailable', 'unavailable'],
    ['EHOSTUNREACH', 'unavailable', 'unavailable'],
    ['ENETUNREACH', 'unavailable', 'unavailable'],
    ['EAI_AGAIN', 'unavailable', 'unavailable'],
    ['ENOTFOUND', 'unavailable', 'unavailable'],
    ['UND_ERR_CONNECT_TIMEOUT', 'unavailable', 'unavailable'],
    ['ECONNRESET', 'unavailable', 'unknown'],
    ['ETIMEDOUT', 'unavailable', 'unknown'],
    ['UND_ERR_BODY_TIMEOUT', 'unavailable', 'unknown'],
    ['CERT_HAS_EXPIRED', 'misconfigured', 'misconfigured'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'misconfigured', 'misconfigured'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'misconfigured', 'misconfigured'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'misconfigured', 'misconfigured'],
    ['ERR_INVALID_URL', 'misconfigured', 'misconfigured'],
  ]
  for (const [code, outcome, ledger] of table) {
    it(`${code}: ${outcome}${outcome === ledger ? '' : `, of a ledger sink ${ledger}`}`, () => {
      expect(outcomeOfError(named(code))).toMatchObject({ outcome, code })
      expect(outcomeOfError(named(code), { ledger: true }).outcome).toBe(ledger)
    })
  }

  it('are looked through: fetch hides the reason in its cause, often in several', () => {
    const several = new AggregateError([named('ECONNREFUSED'), named('ENETUNREACH')])
    const failed = new TypeError('fetch failed', { cause: several })
    expect(outcomeOfError(failed)).toMatchObject({ outcome: 'unavailable', code: 'ECONNREFUSED' })
  })

  it('a deadline: unavailable with HMD_SINK_DEADLINE', () => {
    const late = new DOMException('The operation timed out', 'TimeoutError')
    const outcome = { outcome: 'unavailable', code: 'HMD_SINK_DEADLINE' }
    expect(outcomeOfError(late)).toMatchObject(outcome)
    expect(outcomeOfError(late, { ledger: true }).outcome).toBe('unknown')
  })

  it('that carry a status mean what the status means', () => {
    const error = Object.assign(new Error('no'), { statusCode: 401 })
    expect(outcomeOfError(error)).toMatchObject({ outcome: 'misconfigured', message: 'no' })
  })

  it('of an unknown kind: retry, and a batch is split until the bad event stands alone', () => {
    expect(outcomeOfError(new RangeError('x'))).toMatchObject({
      outcome: 'retry',
      code: 'RangeError',
    })
    expect(outcomeOfError(new RangeError('x'), { items: 9 }).outcome).toBe('split')
  })

  it("user's own sink throws a string: retry with HMD_SINK_BROKEN", () => {
    for (const thrown of ['no', undefined, null, 7, {}, Symbol('x')]) {
      const expected = { outcome: 'retry', code: 'HMD_SINK_BROKEN' }
      expect(outcomeOfError(thrown, { items: 3 })).toMatchObject(expected)
    }
  })
})

describe('what a sink returns', () => {
  it('nothing: all delivered', () => {
    expect(normaliseOutcomes(undefined, events)).toEqual([delivered(), delivered(), delivered()])
  })

  it('one outcome per event: taken, cleaned', () => {
    const given = [delivered('r'), { outcome: 'retry', secret: 'x', afterMs: -1 }, superseded()]
    expect(normaliseOutcomes(given, events)).toEqual([delivered('r'), retry(), superseded()])
  })

  it('the wrong number of outcomes: every event retry with HMD_SINK_BROKEN', () => {
    for (const given of [[], [delivered()], new Array(4).fill(delivered()), null, 'ok', {}]) {
      for (const outcome of normaliseOutcomes(given, events)) {
        expect(outcome).toMatchObject({ outcome: 'retry', code: 'HMD_SINK_BROKEN' })
      }
    }
  })

  it('a wrong shape: only that event is retry with HMD_SINK_BROKEN', () => {
    for (const bad of [undefined, null, 'delivered', { outcome: 'done' }, {}, unknown()]) {
      const [first, second] = normaliseOutcomes([delivered(), bad, delivered()], events)
      expect(first).toBe(delivered())
      expect(second).toMatchObject({ outcome: 'retry', code: 'HMD_SINK_BROKEN' })
    }
    expect(normaliseOutcomes([unknown()], events.slice(2), { ledger: true })[0]).toEqual(unknown())
  })

  it('anything at all: always one good outcome per event', () => {
    fc.assert(
      fc.property(fc.anything(), fc.array(fc.anything(), { minLength: 3, maxLength: 3 }), (a, b) => {
        for (const given of [a, b]) {
          const outcomes = normaliseOutcomes(given, events)
          expect(outcomes).toHaveLength(3)
          for (const { outcome } of outcomes) expect(outcomeNames).toContain(outcome)
        }
      }),
    )
  })
})

describe('asSink', () => {
  it('takes a function or a sink, and nothing else', async () => {
    const made = asSink(function remember() {})
    expect(made.name).toBe('remember')
    await expect(made.deliver(events, {} as never)).resolves.toBeUndefined()
    const own = { name: 'own', deliver: async () => {} }
    expect(asSink(own)).toBe(own)
    expect(capabilitiesOf(own)).toMatchObject({ ledger: false, itemsMax: 5000 })
    for (const bad of [{}, { name: '', deliver() {} }, { name: 'x' }, null, 7]) {
      expect(() => asSink(bad as never)).toThrow('deliver()')
    }
  })

  it('turns a function that throws at once into a rejection', async () => {
    const made = asSink(() => {
      throw new Error('x')
    })
    await expect(made.deliver(events, {} as never)).rejects.toThrow('x')
  })
})

describe('a fingerprint', () => {
  const same = (one: string, two: string) => {
    const [a, b] = [one, two].map((message) => fingerprint('search', rejected({ message })))
    expect(a).toBe(b)
  }

  it('is the same for the same failure of different events', () => {
    same('document 42 is too large', 'document 43 is too large')
    same('field \'title\' of "a" is wrong', 'field \'name\' of "b" is wrong')
    same('GET https://a.example/x?token=1 failed', 'GET https://b.example/y failed')
    same('id 7f0c2a9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f unknown', 'id 00000000-1d2b-4c3d-8e4f-5a6b7c8d9e0f unknown')
    same('no mailbox ann@example.org', 'no mailbox bob.b@mail.example.com')
    same('took 1.5 s', 'took 12 s')
    same('batch a1b2c3d4e5f6a7b8 failed', 'batch ffffffff00000000 failed')
  })

  it('differs by sink, status, code and words', () => {
    const prints = [
      fingerprint('search', rejected({ status: 400, message: 'bad' })),
      fingerprint('mail', rejected({ status: 400, message: 'bad' })),
      fingerprint('search', rejected({ status: 422, message: 'bad' })),
      fingerprint('search', rejected({ code: 'x', message: 'bad' })),
      fingerprint('search', rejected({ status: 400, message: 'worse' })),
      fingerprint('search', rejected()),
      fingerprint('search', unavailable()),
    ]
    expect(new Set(prints).size).toBe(prints.length)
    expect(prints[0]).toBe('search | 400 | bad')
    expect(fingerprint('s', rejected({ message: "can't parse it, isn't JSON" }))).toContain("can't")
  })

  it('is bounded and fast, whatever the message', () => {
    const texts = fc.oneof(
      fc.string({ maxLength: 2000 }),
      fc.constantFrom(...['a', '"', "'", '@', '1-', 'a://', ' ', '<'].map((c) => c.repeat(100_000))),
    )
    const started = performance.now()
    fc.assert(
      fc.property(texts, (message) => {
        const print = fingerprint('s', { outcome: 'retry', message } satisfies Outcome)
        expect(print.length).toBeLessThanOrEqual(200)
      }),
    )
    expect(performance.now() - started).toBeLessThan(2_000)
  })
})
