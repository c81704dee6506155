/**
 * When to try again: exponential backoff with a cap, `Retry-After` as a floor. Jitter is added
 * last and only upwards, because symmetric jitter undercuts the floor the destination asked for.
 */
import { retryAfterMaxMs } from '../sinks/retry-after.ts'

export interface RetryPolicy {
  readonly baseMs: number
  readonly factor: number
  readonly capMs: number
  /** Share of the delay added at random: 0.2 = up to 20 % more. */
  readonly jitter: number
  readonly attemptsMax: number
}

/** `attempt` counts the attempts already made, from 1. max(backoff, what the destination asked for), then jitter. */
export function nextDelayMs(
  policy: RetryPolicy,
  attempt: number,
  afterMs: number | undefined,
  random: () => number,
): number {
  const floor = Math.max(plainBackoffMs(policy, attempt), clampAfter(afterMs))
  return withJitter(floor, policy, random)
}

/** Overflow is harmless: base × factor^n becomes Infinity and the cap takes over. */
export function plainBackoffMs(policy: RetryPolicy, attempt: number): number {
  const steps = Math.max(0, Math.floor(attempt) - 1)
  return Math.min(policy.capMs, policy.baseMs * policy.factor ** steps)
}

function withJitter(ms: number, policy: RetryPolicy, random: () => number): number {
  return Math.round(ms + ms * policy.jitter * random())
}

function clampAfter(afterMs: number | undefined): number {
  return afterMs !== undefined && afterMs > 0 ? Math.min(afterMs, retryAfterMaxMs) : 0
}
