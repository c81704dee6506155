// The types of recovery.mjs, for its test.

type Times = { readonly p50: number; readonly p99: number; readonly max: number }

export function recoveries(entries: readonly { readonly k: string }[]): {
  readonly recoveryMsMax: number
  readonly recoveryMsP50: number
  readonly recoveryMsP99: number
  readonly recoveryCalmMs: Times
  readonly recoveryMs: Readonly<Record<string, number>>
  readonly recoveryMsBySub: Readonly<Record<string, number>>
}
