// The types of check.mjs, for its test.

export type Found = {
  readonly emitted: number
  readonly acked: number
  readonly delivered: number
  readonly duplicates: number
  readonly lost: number
  readonly ghosts: number
  readonly orderViolations: number
  readonly dead: number
  readonly unknown: number
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly max: number }
  readonly violations: readonly string[]
}

export function checkHistory(entries: readonly { readonly k: string }[]): Found
export function duplicatesBound(given: { interruptions: number; loops: number; batchCount: number }): number
export function violationsOf(found: Found, bound: number): number
