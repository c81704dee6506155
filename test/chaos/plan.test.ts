// The plan of faults: the seed alone decides, every kind that a run must have is there, and all of
// it ends within the run.

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { faultNames, planFaults } from './plan.mjs'

const run = { seconds: 60, faults: faultNames, workers: 3, writers: 3 }

it('the same seed plans the same faults, another seed others', () => {
  expect(planFaults({ ...run, seed: 7 })).toEqual(planFaults({ ...run, seed: 7 }))
  expect(planFaults({ ...run, seed: 7 })).not.toEqual(planFaults({ ...run, seed: 8 }))
})

it('a run of 15 s has a kill, a crash and an outage', () => {
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const names = planFaults({ ...run, seconds: 15, seed }).map(({ name }) => name)
      expect(names).toEqual(expect.arrayContaining(['worker-kill', 'db-crash', 'sink-refuse']))
    }),
  )
})

it('faults are in order, and over before the run is', () => {
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const plan = planFaults({ ...run, seed })
      expect(plan.map(({ atMs }) => atMs)).toEqual(plan.map(({ atMs }) => atMs).sort((a, b) => a - b))
      for (const { atMs, ms } of plan) expect(atMs + ms).toBeLessThanOrEqual(60_000)
    }),
  )
})

it('leaving one kind out changes nothing for the others', () => {
  const all = planFaults({ ...run, seed: 7 }).filter(({ name }) => name !== 'db-crash')
  const faults = faultNames.filter((name) => name !== 'db-crash')
  expect(planFaults({ ...run, seed: 7, faults })).toEqual(all)
})
