// What is kept for a moment: no longer, not more, and never a failure.
import { describe, expect, it } from 'vitest'
import { recent } from '../../src/access/recent.ts'

function counting() {
  let now = 1_000
  let asked = 0
  const cache = recent<number>(() => new Date(now), 3_000, 3)
  return {
    cache,
    setTime: (ms: number) => {
      now = ms
    },
    get: (key: string) => cache.get(key, async () => ++asked),
    fail: (key: string) => cache.get(key, () => Promise.reject(new Error('no'))),
  }
}

describe('recent', () => {
  it('asks again after its time, not before', async () => {
    const { get, setTime } = counting()
    expect(await get('a')).toBe(1)
    setTime(3_999)
    expect(await get('a')).toBe(1)
    setTime(4_000)
    expect(await get('a')).toBe(2)
  })

  it('reading does not make it younger', async () => {
    const { get, setTime } = counting()
    for (const ms of [1_000, 2_500, 3_900]) {
      setTime(ms)
      expect(await get('a')).toBe(1)
    }
    setTime(4_100)
    expect(await get('a')).toBe(2)
  })

  it('a clock that was set back keeps nothing alive', async () => {
    const { get, setTime } = counting()
    await get('a')
    setTime(500)
    expect(await get('a')).toBe(2)
  })

  it('those who arrive together ask once', async () => {
    const { get } = counting()
    expect(await Promise.all([get('a'), get('a'), get('a')])).toEqual([1, 1, 1])
  })

  it('a failure is not kept', async () => {
    const { get, fail } = counting()
    await expect(fail('a')).rejects.toThrow('no')
    expect(await get('a')).toBe(1)
  })

  it('the one not used for longest makes room', async () => {
    const { cache, get } = counting()
    for (const key of ['a', 'b', 'c', 'a', 'd']) await get(key)
    expect(cache.size).toBe(3)
    expect(await get('a')).toBe(1)
    expect(await get('b')).toBe(5)
  })
})
