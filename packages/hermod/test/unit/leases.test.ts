// When a claim loop claims lanes or gives some back.

import { describe, expect, it } from 'vitest'
import { LeasedLane } from '../../src/worker/lane.ts'
import { Leases } from '../../src/worker/leases.ts'

const station = { leaseMs: 45_000, pollMs: 1_000 }

/** Lanes 0, 1, … of one loop, each with this state of a call. */
function leasing(share: number, parked: readonly LeasedLane['parked'][]): Leases {
  const leases = new Leases(station as never, () => share)
  leases.lanes = parked.map((state, lane) => {
    const one = new LeasedLane({ lane, fence: 1n, cursor: 0n, againMs: undefined }, performance.now() + 45_000)
    one.parked = state
    return one
  })
  return leases
}

describe('lanes beyond the share', () => {
  it('are given back at once', () => {
    expect(leasing(1, [undefined, 'waiting']).balanceAtMs).toBe(Number.NEGATIVE_INFINITY)
    expect(leasing(1, ['recorded', 'recorded']).balanceAtMs).toBe(Number.NEGATIVE_INFINITY)
  })

  it('are kept while their calls are under way: a loop that could give nothing back would try for ever', () => {
    expect(leasing(1, ['waiting', 'waiting']).balanceAtMs).toBe(Number.POSITIVE_INFINITY)
    expect(leasing(0, ['waiting']).balanceAtMs).toBe(Number.POSITIVE_INFINITY)
  })
})

it('a loop with its share has nothing to arrange', () => {
  expect(leasing(2, [undefined, undefined]).balanceAtMs).toBe(Number.POSITIVE_INFINITY)
})
