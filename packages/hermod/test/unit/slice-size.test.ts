// The size of a replay's slices beside destinations and machines of every speed: live events wait for little more than a
// call takes anyway, and nothing makes the slices small for ever.

import { expect, it } from 'vitest'
import { SliceSize } from '../../src/worker/replay/slice-size.ts'

/** Half to twice as long as usual, the same in every run. */
function jitter(): () => number {
  let seed = 1
  return () => {
    seed = (seed * 48271) % 2147483647
    return 2 ** ((seed / 2147483647) * 2 - 1)
  }
}

/** Sends this many slices; each takes `callMs` and `eventMs` for each of its events. */
function send(size: SliceSize, slices: number, { callMs = 1, eventMs = 0.1, noise = jitter() } = {}) {
  const counts: number[] = []
  const times: number[] = []
  for (let n = 0; n < slices; n++) {
    const count = size.next()
    const ms = (callMs + eventMs * count) * noise()
    size.took(count, ms)
    counts.push(count)
    times.push(ms)
  }
  const late = counts.slice(slices / 2)
  return {
    mean: late.reduce((sum, count) => sum + count, 0) / late.length,
    ms: times.slice(slices / 2).sort((a, b) => a - b),
  }
}

it('a quick destination: slices of a few milliseconds', () => {
  const { mean, ms } = send(new SliceSize(), 400)
  expect(mean).toBeGreaterThan(16)
  expect(ms[Math.floor(ms.length * 0.95)]).toBeLessThan(16)
})

it('a machine that is slow as a whole: one event less would not make a call quicker, so slices stay large', () => {
  const { mean } = send(new SliceSize(), 400, { callMs: 60, eventMs: 0.2 })
  expect(mean).toBeGreaterThan(100)
})

it('events that are slow themselves: few at a time', () => {
  const { mean } = send(new SliceSize(), 400, { callMs: 1, eventMs: 20 })
  expect(mean).toBeLessThan(4)
})

it('slow for a while, then quick again: the slices are what they would have been', () => {
  const size = new SliceSize()
  send(size, 200, { callMs: 200, eventMs: 5 })
  for (let n = 0; n < 10; n++) size.failed()
  const { mean, ms } = send(size, 800)
  expect(mean).toBeGreaterThan(16)
  expect(ms[Math.floor(ms.length * 0.95)]).toBeLessThan(16)
})

it('one call that hangs changes little', () => {
  const size = new SliceSize()
  send(size, 320)
  size.next()
  size.took(1, 5_000)
  const { ms } = send(size, 100)
  expect(ms[Math.floor(ms.length * 0.95)]).toBeLessThan(16)
})

it('a destination that takes half a second for whatever it gets: large slices after a few calls', () => {
  const size = new SliceSize()
  const counts = Array.from({ length: 8 }, () => {
    const count = size.next()
    size.took(count, 500 + count / 10)
    return count
  })
  expect(counts).toEqual([1, 64, 256, 1_000, 1_000, 1_000, 1_000, 1_000])
})
