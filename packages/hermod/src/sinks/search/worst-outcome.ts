/** The outcome of a write to several generations: an item succeeded when all of them accepted it. */
import type { Outcome } from '../sink.ts'

export function isGood(outcome: Outcome | undefined): boolean {
  return outcome?.outcome === 'delivered' || outcome?.outcome === 'superseded'
}

/** The first generation's outcome, unless another one failed. */
export function worstOf(outcomes: readonly (readonly Outcome[])[]): Outcome[] {
  const [first = [], ...others] = outcomes
  return first.map((outcome, at) => {
    if (!isGood(outcome)) return outcome
    const failed = others.map((list) => list[at]).find((one) => !isGood(one))
    return failed ?? outcome
  })
}
