// Every bad input to emit() that can be judged without a database, named as in testing.md §7.

import { describe, expect, it } from 'vitest'
import { HermodError } from '../../src/errors.ts'
import { type NewEvent, prepareEvents } from '../../src/event.ts'

const good = { type: 'document.updated', aggregate: ['document', 42], payload: { a: 1 } } as const
const now = Date.parse('2026-11-15T00:00:00Z')

function refusal(event: unknown): HermodError {
  try {
    prepareEvents(event as NewEvent, undefined, now)
  } catch (error) {
    if (error instanceof HermodError) return error
    throw error
  }
  throw new Error('was accepted')
}

function refused(change: Record<string, unknown>, code: string, field: string) {
  const error = refusal({ ...good, ...change })
  expect(error).toMatchObject({ code, field })
  expect(error.fix).not.toBe('')
  return error
}

describe('a good event', () => {
  it('becomes text, ready to be bound', () => {
    const event = {
      ...good,
      version: 2,
      headers: { Actor: 'p-1', traceparent: 'x' },
      notBefore: '2026-12-24T18:00:00+01:00',
      key: 'order-7',
    }
    expect(prepareEvents(event, undefined, now)).toEqual([
      {
        type: 'document.updated',
        aggregateType: 'document',
        aggregateId: '42',
        payload: '{"a":1}',
        bytes: 7,
        version: 2,
        headers: '{"actor":"p-1","traceparent":"x"}',
        notBefore: '2026-12-24T17:00:00.000Z',
        key: 'order-7',
      },
    ])
  })

  it('without a payload is a reference: JSON null', () => {
    const { payload: _, ...reference } = good
    expect(prepareEvents(reference)).toMatchObject([{ payload: 'null', bytes: 4, version: 1 }])
  })

  it('may have any whole number, BigInt or text of 512 bytes as id', () => {
    for (const id of [0, -1, 2 ** 53 - 1, 2n ** 70n, 'ü'.repeat(256), '😀', ' ']) {
      const [event] = prepareEvents({ ...good, aggregate: ['document', id] })
      expect(event?.aggregateId).toBe(String(id))
    }
  })

  it('is at every limit', () => {
    const type = `a.${'b'.repeat(126)}`
    const headers = Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`${n}`.padEnd(64, 'x'), 'v'.repeat(2048)]))
    const limits = { ...good, type, headers, version: 32_767, key: 'k'.repeat(200) }
    expect(prepareEvents(limits)).toHaveLength(1)
    expect(prepareEvents({ ...good, notBefore: new Date('2036-11-15T00:00:00Z') }, undefined, now)).toHaveLength(1)
  })

  it('none at all is no event', () => {
    expect(prepareEvents([])).toEqual([])
  })
})

describe('emit() gets a type', () => {
  for (const type of ['', 'Document Updated', 'document', 'document.', '.updated', 'a..b', 'a.1b']) {
    it(`${JSON.stringify(type)}: HMD_EVENT_INVALID`, () => {
      refused({ type }, 'HMD_EVENT_INVALID', 'type')
    })
  }
  it('of 129 bytes: HMD_EVENT_INVALID with the bound', () => {
    const error = refused({ type: `a.${'b'.repeat(127)}` }, 'HMD_EVENT_INVALID', 'type')
    expect(error.message).toContain('128 bytes')
  })
  it('with a line end, a number or nothing: HMD_EVENT_INVALID', () => {
    for (const type of ['document.updated\n', 7, undefined, null]) {
      refused({ type }, 'HMD_EVENT_INVALID', 'type')
    }
  })
})

describe('emit() gets an aggregate', () => {
  it("['document', undefined]: HMD_EVENT_INVALID", () => {
    refused({ aggregate: ['document', undefined] }, 'HMD_EVENT_INVALID', 'aggregate[1]')
  })
  it('id of 513 bytes: HMD_EVENT_INVALID with the bound', () => {
    for (const id of ['x'.repeat(513), `${'ü'.repeat(256)}x`]) {
      const error = refused({ aggregate: ['document', id] }, 'HMD_EVENT_INVALID', 'aggregate[1]')
      expect(error.message).toContain('512 bytes')
    }
  })
  it('id that is empty, NaN, a fraction, beyond 2^53, NUL or a lone surrogate', () => {
    for (const id of ['', Number.NaN, 1.5, 2 ** 53, 'a\0b', '\ud800', null, {}, true]) {
      refused({ aggregate: ['document', id] }, 'HMD_EVENT_INVALID', 'aggregate[1]')
    }
  })
  it('that is no pair', () => {
    for (const aggregate of [undefined, 'document', ['document'], ['document', 1, 2], {}]) {
      refused({ aggregate }, 'HMD_EVENT_INVALID', 'aggregate')
    }
  })
  it('type that is malformed or of 129 bytes', () => {
    for (const type of ['Document', '', 'a'.repeat(129), 7]) {
      refused({ aggregate: [type, 1] }, 'HMD_EVENT_INVALID', 'aggregate[0]')
    }
  })
})

describe('emit() gets other fields', () => {
  it('{ notBefor }: HMD_OPTION_UNKNOWN, did you mean notBefore?', () => {
    const error = refused({ notBefor: new Date() }, 'HMD_OPTION_UNKNOWN', 'notBefor')
    expect(error.message).toContain('did you mean notBefore?')
  })
  it('a key nobody knows: HMD_OPTION_UNKNOWN without a guess', () => {
    const error = refused({ xyzzy: 1 }, 'HMD_OPTION_UNKNOWN', 'xyzzy')
    expect(error.message).not.toContain('did you mean')
  })
  it('a version out of bounds', () => {
    for (const version of [0, -1, 1.5, 32_768, Number.NaN, '1']) {
      refused({ version }, 'HMD_EVENT_INVALID', 'version')
    }
  })
  it('a notBefore that is no time, has no zone, does not exist or is too far', () => {
    const times = [
      new Date('x'),
      'tomorrow',
      '2027-01-01',
      '2027-01-01T00:00:00',
      '2027-02-30T00:00:00Z',
      '2027-01-01T25:00:00Z',
      '2036-11-15T00:00:01Z',
      '1969-12-31T23:59:59Z',
      1_800_000_000_000,
      null,
    ]
    for (const notBefore of times) refused({ notBefore }, 'HMD_EVENT_INVALID', 'notBefore')
  })
  it('a key that is empty, of 201 bytes or no text', () => {
    for (const key of ['', 'k'.repeat(201), `${'ü'.repeat(100)}k`, 'a\0', '\udc00', 7, null]) {
      refused({ key }, 'HMD_EVENT_INVALID', 'key')
    }
  })
  it('something that is no event at all', () => {
    for (const event of [undefined, null, 'document.updated', 7]) {
      expect(refusal(event)).toMatchObject({ code: 'HMD_EVENT_INVALID', field: 'event' })
    }
    expect(refusal([good, null])).toMatchObject({ field: 'events[1]' })
  })
})

describe('emit() gets headers', () => {
  it('with CR, LF or NUL in a value', () => {
    for (const value of ['a\r\nBcc: x', 'a\n', '\r', 'a\0', '\ud800']) {
      refused({ headers: { actor: value } }, 'HMD_EVENT_INVALID', 'headers.actor')
    }
  })
  it('with a bad name', () => {
    for (const name of ['', 'a b', 'a:b', 'a\n', 'ü', 'x'.repeat(65)]) {
      expect(refusal({ ...good, headers: { [name]: 'v' } }).code).toBe('HMD_EVENT_INVALID')
    }
  })
  it('65 of them, a value of 2,049 bytes, a number as value, the same name in two cases', () => {
    const many = Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`h${n}`, 'v']))
    refused({ headers: many }, 'HMD_EVENT_INVALID', 'headers')
    refused({ headers: { a: 'v'.repeat(2049) } }, 'HMD_EVENT_INVALID', 'headers.a')
    refused({ headers: { a: 7 } }, 'HMD_EVENT_INVALID', 'headers.a')
    refused({ headers: { A: '1', a: '2' } }, 'HMD_EVENT_INVALID', 'headers')
    refused({ headers: ['a'] }, 'HMD_EVENT_INVALID', 'headers')
  })
  it('named __proto__, which stays data', () => {
    const headers = JSON.parse('{"__proto__":"v"}') as Record<string, string>
    expect(prepareEvents({ ...good, headers })[0]?.headers).toBe('{"__proto__":"v"}')
  })
})

describe('emit() gets many events', () => {
  it('10,001: HMD_EVENT_LIMIT', () => {
    const events = Array.from({ length: 10_001 }, () => good)
    expect(refusal(events)).toMatchObject({ code: 'HMD_EVENT_LIMIT', details: { count: 10_001 } })
    expect(prepareEvents(events.slice(1))).toHaveLength(10_000)
  })
  it('of which one is bad: it is named', () => {
    const events: unknown[] = Array.from({ length: 20 }, () => good)
    events[17] = { ...good, payload: { a: [0, 0, 0, { b: undefined }] } }
    const error = refusal(events)
    expect(error).toMatchObject({
      code: 'HMD_PAYLOAD_INVALID',
      field: 'events[17].payload',
      details: { path: '$.a[3].b' },
    })
  })
  it('with a hole: it is named', () => {
    const events: unknown[] = [good]
    events[2] = good
    expect(refusal(events)).toMatchObject({ field: 'events[1]' })
  })
})
