// The types of plan.mjs, for its test.

export type Fault = {
  readonly name: string
  readonly atMs: number
  readonly ms: number
  readonly who?: string
  readonly mode?: string
  readonly sub?: string
}

export const faultNames: readonly string[]
export function planFaults(given: {
  seed: number
  seconds: number
  faults: readonly string[]
  workers: number
  writers: number
}): Fault[]
