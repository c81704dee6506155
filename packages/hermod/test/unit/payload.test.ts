// Payloads: what goes in comes out, and whatever JSON or PostgreSQL would change is refused.

import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HermodError } from '../../src/errors.ts'
import { payloadBytesMax, payloadToText } from '../../src/payload.ts'

function refusal(payload: unknown): HermodError {
  try {
    payloadToText(payload, 'payload')
  } catch (error) {
    if (error instanceof HermodError) return error
    throw error
  }
  throw new Error('was accepted')
}

function pathOf(payload: unknown): unknown {
  const error = refusal(payload)
  expect(error.code).toBe('HMD_PAYLOAD_INVALID')
  expect(error.message).toContain(String(error.details?.path))
  return error.details?.path
}

const nested = (depth: number): unknown => JSON.parse('['.repeat(depth) + ']'.repeat(depth))

describe('a good payload', () => {
  it('comes out as it went in', () => {
    const values = fc.jsonValue({ noNegativeZero: true } as fc.JsonSharedConstraints)
    fc.assert(
      fc.property(values, (value) => {
        const storable = !/\\u0000|\\ud[89a-f]/i.test(JSON.stringify(value))
        fc.pre(storable)
        const { text, bytes } = payloadToText(value, 'payload')
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
        expect(text).toBe(JSON.stringify(value))
        expect(bytes).toBe(Buffer.byteLength(text))
      }),
      { numRuns: 500 },
    )
  })

  it('is never accepted changed: accepted means deeply equal after a round trip', () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withNullPrototype: true,
      withSparseArray: true,
      withTypedArray: true,
      withUnicodeString: true,
    } as fc.ObjectConstraints)
    fc.assert(
      fc.property(anything, (value) => {
        let text: string
        try {
          text = payloadToText(value, 'payload').text
        } catch (error) {
          expect(error).toBeInstanceOf(HermodError)
          return
        }
        expect(plain(JSON.parse(text))).toEqual(plain(value))
      }),
      { numRuns: 2_000 },
    )
  })

  it('may hold dates, toJSON(), null prototypes, other realms, __proto__ and shared objects', () => {
    const shared = { x: 1 }
    const payload = {
      date: new Date(0),
      url: new URL('https://example.org/'),
      bare: Object.assign(Object.create(null), { a: 1 }),
      foreign: runInNewContext('({ a: [1, { b: 2 }] })'),
      twice: [shared, shared],
      hostile: JSON.parse('{"__proto__":{"polluted":true}}'),
      escapes: '\\u0000 \\ud800 \u2028 "',
    }
    const { text } = payloadToText(payload, 'payload')
    expect(JSON.parse(text)).toMatchObject({ escapes: payload.escapes, twice: [shared, shared] })
    expect(text).toContain('"__proto__":{"polluted":true}')
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })
})

describe('emit() gets a payload', () => {
  const symbol = Symbol('s')
  class Money {
    amount = 1
  }
  const bad: [name: string, value: unknown][] = [
    ['undefined', undefined],
    ['a function', () => 1],
    ['a symbol', symbol],
    ['a symbol as key', { [symbol]: 1 }],
    ['a BigInt', 1n],
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['a Map', new Map([[1, 2]])],
    ['a Set', new Set([1])],
    ['a class instance', new Money()],
    ['an Error', new Error('x')],
    ['a typed array', new Uint8Array(2)],
    ['a RegExp', /x/],
    ['a Promise', Promise.resolve()],
    ['a boxed number', Object(1)],
    ['a boxed BigInt', Object(1n)],
    ['an invalid Date', new Date('x')],
    ['a toJSON() that gives nothing', { toJSON: () => undefined }],
    [
      'a toJSON() that throws',
      {
        toJSON: () => {
          throw new Error('x')
        },
      },
    ],
    ['a lone surrogate', 'a\ud800b'],
    ['a low surrogate', '\udc00'],
    ['\\u0000', 'a\0b'],
  ]
  for (const [name, value] of bad) {
    it(`${name}: HMD_PAYLOAD_INVALID with the path, wherever it is`, () => {
      expect(pathOf(value)).toBe('$')
      expect(pathOf({ a: [0, 0, 0, { b: value }] })).toBe('$.a[3].b')
      expect(pathOf({ ok: 1, 'with space': value })).toBe('$["with space"]')
    })
  }

  it('a hole in an array: HMD_PAYLOAD_INVALID with the path', () => {
    expect(pathOf({ list: new Array(3) })).toBe('$.list[0]')
  })

  it('NUL or a lone surrogate in a key: HMD_PAYLOAD_INVALID with the path', () => {
    expect(pathOf({ a: { 'x\0': 1 } })).toBe('$.a["x\\u0000"]')
    expect(pathOf({ '\ud800': 1 })).toBe('$["\\ud800"]')
  })

  it('a cycle: HMD_PAYLOAD_INVALID with the path where it closes', () => {
    const root: Record<string, unknown> = { name: 'root' }
    root.children = [{ parent: root }]
    expect(pathOf(root)).toBe('$.children[0].parent')
    const list: unknown[] = []
    list.push(list)
    expect(pathOf(list)).toBe('$[0]')
  })

  it('256 kB + 1 byte: HMD_PAYLOAD_TOO_LARGE with the size and the way out', () => {
    expect(payloadToText('x'.repeat(payloadBytesMax - 2), 'payload').bytes).toBe(262_144)
    const error = refusal('x'.repeat(payloadBytesMax - 1))
    expect(error).toMatchObject({ code: 'HMD_PAYLOAD_TOO_LARGE', details: { bytes: 262_145 } })
    expect(error.message).toContain('emit a reference')
    expect(refusal('ü'.repeat(payloadBytesMax / 2)).code).toBe('HMD_PAYLOAD_TOO_LARGE')
  })

  it('depth 65: HMD_PAYLOAD_TOO_LARGE; 64 is accepted; 100,000 neither overflows nor hangs', () => {
    expect(payloadToText(nested(64), 'payload').bytes).toBe(128)
    expect(refusal(nested(65)).code).toBe('HMD_PAYLOAD_TOO_LARGE')
    let deep: unknown = 1
    for (let depth = 0; depth < 100_000; depth++) deep = { deep }
    expect(refusal(deep).code).toBe('HMD_PAYLOAD_TOO_LARGE')
  })

  it('small in memory and endless as JSON (shared references): refused without unfolding it', () => {
    let laughs: unknown = 'ha'
    for (let depth = 0; depth < 40; depth++) laughs = [laughs, laughs]
    expect(refusal(laughs)).toMatchObject({ code: 'HMD_PAYLOAD_TOO_LARGE' })
    let empty: unknown = {}
    for (let depth = 0; depth < 40; depth++) empty = { a: empty, b: empty }
    expect(refusal(empty)).toMatchObject({ code: 'HMD_PAYLOAD_TOO_LARGE' })
  })

  it('with a getter that changes its mind: refused, never half-written', () => {
    let reads = 0
    const fickle = {
      get a() {
        reads += 1
        return reads > 1 ? 1n : 1
      },
    }
    expect(pathOf(fickle)).toBe('$')
  })
})

/** What JSON is allowed to do to a value: dates become text, -0 becomes 0, prototypes go. */
function plain(value: unknown): unknown {
  if (Object.is(value, -0)) return 0
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return Array.from(value, plain)
  if (typeof value !== 'object' || value === null) return value
  const { toJSON } = value as { toJSON?: unknown }
  if (typeof toJSON === 'function') return plain(toJSON.call(value, ''))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]))
}
