// What is remembered of an index's generations: for how long, and what never is.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Generation } from '../../src/sinks/search/engine.ts'
import { KnownGenerations, pick } from '../../src/sinks/search/generations.ts'

const one = (id: string, state: Generation['state']): Generation => ({
  id,
  state,
  createdAt: new Date(0),
})
const first = [one('1', 'live')]
const second = [one('1', 'retired'), one('2', 'live')]
const never = () => Promise.reject(new Error('asked'))

let known: KnownGenerations<Generation>

beforeEach(() => {
  vi.useFakeTimers()
  known = new KnownGenerations(1_000)
})
afterEach(() => {
  vi.useRealTimers()
})

describe('a list', () => {
  it('is believed for its time, which begins when it is asked for', async () => {
    await known.now('documents', async () => {
      vi.advanceTimersByTime(400)
      return first
    })
    vi.advanceTimersByTime(599)
    expect(await known.list('documents', never)).toBe(first)
    vi.advanceTimersByTime(1)
    await expect(known.list('documents', never)).rejects.toThrow('asked')
  })

  it('is asked for anew by who wants it as it is, and kept', async () => {
    await known.list('documents', async () => first)
    expect(await known.now('documents', async () => second)).toBe(second)
    expect(await known.list('documents', never)).toBe(second)
  })

  it('that was asked for before a change is not kept', async () => {
    await known.list('documents', async () => first)
    const stale = await known.now('documents', async () => {
      known.changed('documents')
      return first
    })
    expect(stale).toBe(first)
    expect(await known.list('documents', async () => second)).toBe(second)
  })

  it('without a live one is not kept, nor the one before', async () => {
    await known.list('documents', async () => first)
    await known.now('documents', async () => [one('2', 'building')])
    expect(await known.list('documents', async () => second)).toBe(second)
  })

  it('that could not be had leaves the one before', async () => {
    await known.list('documents', async () => first)
    await expect(known.now('documents', never)).rejects.toThrow('asked')
    expect(await known.list('documents', never)).toBe(first)
  })

  it('is one for each index', async () => {
    await known.list('documents', async () => first)
    await known.list('drafts', async () => second)
    known.changed('drafts')
    expect(await known.list('documents', never)).toBe(first)
  })
})

it('the live one is meant, unless told otherwise; what is not there is said', () => {
  expect(pick(second, 'documents', undefined).id).toBe('2')
  expect(pick(second, 'documents', '1').id).toBe('1')
  expect(() => pick([], 'documents', undefined)).toThrow('there is no index documents')
  expect(() => pick(second, 'documents', '3')).toThrow('there is no generation 3 of index documents')
})
