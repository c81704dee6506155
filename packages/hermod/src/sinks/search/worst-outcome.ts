/** Several places were written: an item succeeded when all of them took it. */
import type { Outcome } from '../sink.ts'

export function isGood(outcome: Outcome | undefined): boolean {
  return outcome?.outcome === 'delivered' || outcome?.outcome === 'superseded'
}

/** The first place's outcome, unless another one failed. */
export function worstOf(outcomes: readonly (readonly Outcome[])[]): Outcome[] {
  const [first = [], ...others] = outcomes
  return first.map((outcome, at) => {
    if (!isGood(outcome)) return outcome
    const failed = others.map((list) => list[at]).find((one) => !isGood(one))
    return failed ?? outcome
  })
}
