// When to try again: bounds, monotony before jitter, Retry-After.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseRetryAfter, retryAfterMaxMs } from '../../src/sinks/retry-after.ts'
import { nextDelayMs, type RetryPolicy } from '../../src/worker/retry.ts'

const standard = { baseMs: 1000, factor: 2, capMs: 300_000, jitter: 0.2, attemptsMax: 6 }
const never = () => 0
const always = () => 1 - Number.EPSILON

const policies: fc.Arbitrary<RetryPolicy> = fc.record({
  baseMs: fc.integer({ min: 1, max: 10_000 }),
  factor: fc.double({ min: 1, max: 10, noNaN: true }),
  capMs: fc.integer({ min: 10_000, max: 3_600_000 }),
  jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  attemptsMax: fc.integer({ min: 1, max: 100 }),
})
const attempts = fc.integer({ min: 1, max: 2_000 })
const randoms = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

describe('backoff', () => {
  it('is 1-2-4-8-16 s by default', () => {
    const delays = [1, 2, 3, 4, 5].map((attempt) => nextDelayMs(standard, attempt, undefined, never))
    expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000])
  })

  it('never undercuts the plain delay, exceeds it by the jitter at most, and is finite', () => {
    fc.assert(
      fc.property(policies, attempts, randoms, (policy, attempt, random) => {
        const floor = nextDelayMs(policy, attempt, undefined, never)
        const delay = nextDelayMs(policy, attempt, undefined, () => random)
        expect(delay).toBeGreaterThanOrEqual(floor)
        expect(delay).toBeLessThanOrEqual(Math.ceil(policy.capMs * (1 + policy.jitter)))
        expect(delay).toBeLessThanOrEqual(Math.ceil((floor + 1) * (1 + policy.jitter)))
        expect(Number.isSafeInteger(delay)).toBe(true)
      }),
    )
  })

  it('grows with every attempt before jitter, up to the cap', () => {
    fc.assert(
      fc.property(policies, attempts, (policy, attempt) => {
        const [one, two] = [attempt, attempt + 1].map((n) => nextDelayMs(policy, n, undefined, never))
        expect(two).toBeGreaterThanOrEqual(one as number)
        expect(two).toBeLessThanOrEqual(policy.capMs)
      }),
    )
  })
})

describe('the next delay', () => {
  it('is at least the backoff and at least what the destination asked for', () => {
    const afters = fc.option(fc.integer({ min: -5, max: 10_000_000 }), { nil: undefined })
    fc.assert(
      fc.property(policies, attempts, afters, randoms, (policy, attempt, after, random) => {
        const delay = nextDelayMs(policy, attempt, after, () => random)
        expect(delay).toBeGreaterThanOrEqual(nextDelayMs(policy, attempt, undefined, never))
        expect(delay).toBeGreaterThanOrEqual(Math.min(after ?? 0, retryAfterMaxMs))
        if (after === undefined) expect(delay).toBe(nextDelayMs(policy, attempt, undefined, () => random))
      }),
    )
  })

  it('spreads those that were told the same time', () => {
    expect(nextDelayMs(standard, 1, 60_000, never)).toBe(60_000)
    expect(nextDelayMs(standard, 1, 60_000, always)).toBe(72_000)
  })
})

describe('Retry-After', () => {
  const now = Date.parse('2026-11-15T12:00:00Z')
  const cases: [value: string | null | undefined, ms: number | undefined][] = [
    ['0', 0],
    ['120', 120_000],
    [' 7 ', 7000],
    ['99999999999', retryAfterMaxMs],
    ['Sun, 15 Nov 2026 12:00:30 GMT', 30_000],
    ['Sunday, 15-Nov-26 12:00:30 GMT', 30_000],
    ['Sun Nov 15 12:00:30 2026', 30_000],
    ['Sat Nov  7 12:00:30 2026', undefined],
    ['Mon, 16 Nov 2026 12:00:00 GMT', retryAfterMaxMs],
    ['Sun, 15 Nov 2026 11:59:59 GMT', undefined],
    ['Sun, 99 Nov 2026 12:00:30 GMT', undefined],
    ['-5', undefined],
    ['1.5', undefined],
    ['1e3', undefined],
    ['soon', undefined],
    ['', undefined],
    ['2026-11-15T13:00:00Z', undefined],
    [null, undefined],
    [undefined, undefined],
  ]
  for (const [value, ms] of cases) {
    it(`${JSON.stringify(value)} means ${ms ?? 'the usual backoff'}`, () => {
      expect(parseRetryAfter(value, now)).toBe(ms)
    })
  }

  it('is total: any text gives nothing or 0 to 1 h', () => {
    const texts = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.integer().map(String))
    fc.assert(
      fc.property(texts, (text) => {
        const ms = parseRetryAfter(text, now) ?? 0
        expect(ms).toBeGreaterThanOrEqual(0)
        expect(ms).toBeLessThanOrEqual(retryAfterMaxMs)
      }),
    )
  })
})
