/** Several places were written: an item succeeded when all of them took it. */
import type { Outcome } from '../sink.ts'

const good = ['delivered', 'superseded']

/** The first place's outcome, unless another one failed. */
export function worstOf(outcomes: readonly (readonly Outcome[])[]): Outcome[] {
  const [first = [], ...others] = outcomes
  return first.map((outcome, at) => {
    if (!good.includes(outcome.outcome)) return outcome
    const failed = others.map((list) => list[at]).find((one) => !good.includes(`${one?.outcome}`))
    return failed ?? outcome
  })
}
