// Typed events: payload types for emit and sinks, refusals at run time, upcasting when read.

import { describe, expect, expectTypeOf, it } from 'vitest'
import { defineEvents, type NewEventOf, type OutboxEventOf, type PayloadOf, type } from '../../src/define-events.ts'
import { HermodError } from '../../src/errors.ts'
import { DeliveredEvent, prepareEvents } from '../../src/event.ts'

interface Document {
  title: string
  words: number
}

function parseDraft(payload: unknown): { draft: number } {
  const { draft } = payload as { draft?: unknown }
  if (typeof draft !== 'number') throw new TypeError('draft must be a number')
  return { draft }
}

const events = defineEvents({
  'document.updated': {
    version: 3,
    payload: type<Document>(),
    upcast: {
      1: (payload: { name: string }) => ({ title: payload.name }),
      2: (payload: { title: string }) => ({ ...payload, words: payload.title.split(' ').length }),
    },
  },
  'draft.saved': { parse: parseDraft },
  'document.refreshed': {},
})
type Events = typeof events

const at = { aggregate: ['document', 1] } as const
const payload = { title: 'a b', words: 2 }

function codeOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof HermodError) return error.code
    throw error
  }
  return 'accepted'
}

function read(name: string, version: number, value: unknown) {
  return new DeliveredEvent({
    id: 1n,
    position: 1n,
    lane: 0,
    type: name,
    aggregateType: 'document',
    aggregateId: '1',
    version,
    headersText: null,
    createdAt: 0,
    payloadText: JSON.stringify(value),
    attempt: 1,
    definitions: events,
  }).payload
}

describe('the types', () => {
  it('of payloads are known', () => {
    expectTypeOf<PayloadOf<Events, 'document.updated'>>().toEqualTypeOf<Document>()
    expectTypeOf<PayloadOf<Events, 'draft.saved'>>().toEqualTypeOf<{ draft: number }>()
    expectTypeOf<PayloadOf<Events, 'document.refreshed'>>().toEqualTypeOf<unknown>()
  })

  it('of what emit takes are known; anything else does not compile', () => {
    type Emitted = NewEventOf<Events>
    const good: Emitted = { ...at, type: 'document.updated', payload }
    const reference: Emitted = { ...at, type: 'document.refreshed' }
    // @ts-expect-error: not declared
    const undeclared: Emitted = { ...at, type: 'document.updatd', payload }
    // @ts-expect-error: another type's payload
    const wrong: Emitted = { ...at, type: 'draft.saved', payload }
    // @ts-expect-error: a declared payload is not optional
    const missing: Emitted = { ...at, type: 'document.updated' }
    expect([good, reference, undeclared, wrong, missing]).toHaveLength(5)
  })

  it('of what a sink hears follow its patterns', () => {
    type Heard = OutboxEventOf<Events, 'document.*'>
    expectTypeOf<Heard['type']>().toEqualTypeOf<'document.updated' | 'document.refreshed'>()
    expectTypeOf<OutboxEventOf<Events>['type']>().toEqualTypeOf<
      'document.updated' | 'document.refreshed' | 'draft.saved'
    >()
    expectTypeOf<OutboxEventOf<Events, 'draft.saved'>['payload']>().toEqualTypeOf<{
      draft: number
    }>()
    const titleOf = (event: Heard) => (event.type === 'document.updated' ? event.payload.title : '')
    expectTypeOf(titleOf).returns.toEqualTypeOf<string>()
  })
})

describe('emit with declared types', () => {
  it('stores the declared version', () => {
    const [event] = prepareEvents({ ...at, type: 'document.updated', payload }, events)
    expect(event?.version).toBe(3)
  })

  it('takes an older version that can still be read, for a rolling deploy', () => {
    const older = { ...at, type: 'document.updated', version: 1, payload: { name: 'x' } }
    expect(prepareEvents(older, events)[0]?.version).toBe(1)
  })

  it('of an undeclared type or version: HMD_EVENT_UNKNOWN', () => {
    const unknown = () => prepareEvents({ ...at, type: 'document.updatd' }, events)
    expect(codeOf(unknown)).toBe('HMD_EVENT_UNKNOWN')
    expect(unknown).toThrow('did you mean document.updated?')
    const version = { ...at, type: 'draft.saved', version: 2, payload: { draft: 1 } }
    expect(codeOf(() => prepareEvents([version], events))).toBe('HMD_EVENT_UNKNOWN')
    expect(codeOf(() => prepareEvents({ ...at, type: 'draft.constructor' }, events))).toBe('HMD_EVENT_UNKNOWN')
  })

  it('asks parse about what a reader will see, and stores what was given', () => {
    const saved = { ...at, type: 'draft.saved', payload: { draft: 1, more: new Date(0) } }
    expect(prepareEvents(saved, events)[0]?.payload).toContain('1970')
    const bad = () => prepareEvents([{ ...saved, payload: { draft: '1' } }], events)
    expect(codeOf(bad)).toBe('HMD_PAYLOAD_INVALID')
    expect(bad).toThrow('events[0].payload: draft must be a number')
    expect(prepareEvents({ ...at, type: 'draft.saved' }, events)[0]?.payload).toBe('null')
  })
})

describe('reading with declared types', () => {
  it('brings v1 to v2 to v3', () => {
    expect(read('document.updated', 1, { name: 'a b c' })).toEqual({ title: 'a b c', words: 3 })
    expect(read('document.updated', 2, { title: 'a' })).toEqual({ title: 'a', words: 1 })
    expect(read('document.updated', 3, payload)).toEqual(payload)
    expect(read('document.updated', 1, null)).toBeNull()
  })

  it('parses what it brought up', () => {
    expect(read('draft.saved', 1, { draft: 1, more: 2 })).toEqual({ draft: 1 })
    expect(codeOf(() => read('draft.saved', 1, {}))).toBe('HMD_PAYLOAD_INVALID')
  })

  it('refuses a version newer than this program, and an upcaster that fails', () => {
    expect(codeOf(() => read('document.updated', 4, {}))).toBe('HMD_EVENT_UNKNOWN')
    expect(codeOf(() => read('document.updated', 2, { name: 1 }))).toBe('HMD_PAYLOAD_INVALID')
  })
})

describe('a bad declaration', () => {
  it('is refused with all its problems at once', () => {
    const declare = () =>
      defineEvents({
        'Document Updated': {},
        'a.b': { version: 3, upcast: { 1: (p) => p, 3: (p) => p } },
        'c.d': { version: 0 },
        'e.f': { versoin: 2 } as object,
      })
    const problems: string[] = []
    try {
      declare()
    } catch (error) {
      const { details = {} } = error as HermodError
      problems.push(...(details.problems as { field: string }[]).map(({ field }) => field))
    }
    expect(problems).toEqual(['Document Updated', 'a.b.upcast[3]', 'a.b.upcast[2]', 'c.d.version', 'e.f.versoin'])
    expect(declare).toThrow('did you mean version?')
  })
})
