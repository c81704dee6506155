// The types of check.mjs, for its test.

export type Found = {
  readonly emitted: number
  readonly acked: number
  readonly delivered: number
  readonly duplicates: number
  readonly duplicatesBy: Readonly<Record<string, number>>
  readonly lost: number
  readonly ghosts: number
  readonly orderViolations: number
  /** Destinations whose last word on an aggregate is not the newest state. */
  readonly stale: number
  readonly staleBy: Record<'versions' | 'lastWrite', Readonly<Record<string, number>>>
  /** Ledger: effects that happened twice; effects whose row does not say so. */
  readonly sentTwice: number
  readonly unrecorded: number
  /** Dead letters that no destination ever rejected. */
  readonly wronglyDead: number
  /** Not delivered when the time of the run was over. */
  readonly unfinished: number
  readonly dead: number
  readonly unknown: number
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly max: number }
  readonly violations: readonly string[]
}

export function checkHistory(entries: readonly { readonly k: string }[]): Found
/** By subscription: how many repeats are allowed. */
export type Bounds = Readonly<Record<string, { readonly all: number }>>
export function violationsOf(found: Found, bounds?: Bounds): number
