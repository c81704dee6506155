/** What a merge needs to know of each place that refers to a person. */
import type { Asked, Tx } from '../../platform.ts'

export interface Pair {
  readonly from: string
  readonly into: string
}

/** One table, or a few that belong together, whose live references move. */
export interface Reference<Before = unknown> {
  /** Key of its pre-image. */
  readonly name: string
  /** How many rows a merge would change, by column. */
  count(db: Asked, pair: Pair): Promise<Readonly<Record<string, number>>>
  /** Moves them and returns what is needed to put them back. */
  move(tx: Tx, pair: Pair, by: string | null): Promise<Before>
  /** Puts back what was not changed since the merge; the rest stays with the survivor. */
  restore(tx: Tx, pair: Pair, before: Before): Promise<void>
}
