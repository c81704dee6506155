// What an ablation is: one safeguard of the engine taken out of a copy of its text, and the case
// that must notice. Production code has no switch.

import type { Case } from '../support/case.ts'

export type Patch = {
  /** From `packages/hermod/`: `routines/sequence.sql`, `src/flow/deliver.ts`. */
  readonly file: string
  /** Must occur exactly once, so that an ablation cannot rot. Where a line of SQL breaks does not matter. */
  readonly find: string
  readonly replace: string
}

export type Sabotage = {
  readonly name: string
  /** Which safeguard is gone. */
  readonly says: string
  readonly patches: readonly Patch[]
  readonly caughtBy: Case
  /** The failure of the case, so that it is red for the right reason. */
  readonly red: RegExp
}

export function applyPatch(text: string, { file, find, replace }: Patch): string {
  const parts = text.split(file.endsWith('.sql') ? anyLayout(find) : find)
  if (parts.length === 2) return parts.join(replace)
  throw new Error(`${file}: the text to replace occurs ${parts.length - 1} times, must be exactly once:\n${find}`)
}

function anyLayout(text: string): RegExp {
  const words = text.split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(words.join('\\s+'))
}
