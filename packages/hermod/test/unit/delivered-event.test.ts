// An event as a sink gets it: nothing is parsed before it is read.

import { describe, expect, it, vi } from 'vitest'
import { DeliveredEvent } from '../../src/event.ts'

const fields = {
  id: 7n,
  position: 9n,
  lane: 3,
  type: 'document.updated',
  aggregateType: 'document',
  aggregateId: '42',
  version: 1,
  headersText: '{"actor":"p-1"}',
  createdAt: '2026-11-15T00:00:00Z',
  payloadText: '{"n": 12345678901234567890}',
  attempt: 1,
}

describe('a delivered event', () => {
  it('hands on the raw text without parsing it', () => {
    const parse = vi.spyOn(JSON, 'parse')
    const event = new DeliveredEvent({ ...fields, payloadText: 'not even JSON' })
    expect(event.payloadText).toBe('not even JSON')
    expect(event.bytes).toBe(13)
    expect(parse).not.toHaveBeenCalled()
    parse.mockRestore()
  })

  it('parses payload and headers once', () => {
    const event = new DeliveredEvent<{ n: number }>(fields)
    const parse = vi.spyOn(JSON, 'parse')
    expect(event.payload).toBe(event.payload)
    expect(event.headers).toBe(event.headers)
    expect(parse).toHaveBeenCalledTimes(2)
    parse.mockRestore()
    expect(event.headers).toEqual({ actor: 'p-1' })
    expect(event.createdAt).toEqual(new Date('2026-11-15T00:00:00Z'))
    expect(new DeliveredEvent({ ...fields, headersText: null }).headers).toEqual({})
  })

  it('can be given a loaded or corrected payload', () => {
    const event = new DeliveredEvent({ ...fields, bytes: 27 })
    const loaded = event.with({ payloadText: '[]', attempt: 2 })
    expect(loaded).toMatchObject({ payload: [], bytes: 2, attempt: 2, position: 9n, absent: false })
    expect(event).toMatchObject({ bytes: 27, attempt: 1 })
    expect(event.with({ absent: true })).toMatchObject({ absent: true, bytes: 27 })
  })

  it('prints without its payload', () => {
    const printed = JSON.stringify(new DeliveredEvent(fields))
    expect(JSON.parse(printed)).toMatchObject({ position: '9', type: 'document.updated' })
    expect(printed).not.toContain('12345')
  })
})
