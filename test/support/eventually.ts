// Waits for a condition instead of for time: asks again every few milliseconds until it holds.

import { setTimeout as pause } from 'node:timers/promises'

export type EventuallyOptions = {
  readonly timeoutMs?: number
  readonly everyMs?: number
  /** Said in the error: "waited 10000 ms for <what>". */
  readonly what?: string
}

/**
 * Resolves with what `fn` returns once it neither throws nor returns `false`; after the limit
 * (default 10 s) fails with the last error as its cause.
 */
export async function eventually<T>(
  fn: () => T | Promise<T>,
  { timeoutMs = 10_000, everyMs = 5, what = 'a condition' }: EventuallyOptions = {},
): Promise<Exclude<T, false>> {
  const deadline = performance.now() + timeoutMs
  let last: unknown
  do {
    try {
      const value = await fn()
      if (value !== false) return value as Exclude<T, false>
      last = undefined
    } catch (error) {
      last = error
    }
    await pause(everyMs)
  } while (performance.now() < deadline)
  const reason = last instanceof Error ? `: ${last.message}` : ''
  throw new Error(`waited ${timeoutMs} ms for ${what}${reason}`, { cause: last })
}
