/**
 * When to try again: exponential backoff with a cap, `Retry-After` as a floor. Jitter is added
 * last and only upwards, because symmetric jitter undercuts the floor the destination asked for.
 */
export interface RetryPolicy {
  readonly baseMs: number
  readonly factor: number
  readonly capMs: number
  /** Share of the delay added at random: 0.2 = up to 20 % more. */
  readonly jitter: number
  readonly attemptsMax: number
}

export const retryAfterMaxMs = 3_600_000

/** `attempt` counts the attempts already made, from 1. */
export function backoffMs(policy: RetryPolicy, attempt: number, random: () => number): number {
  return withJitter(plainBackoffMs(policy, attempt), policy, random)
}

/** max(backoff, what the destination asked for), then jitter. */
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

const SECONDS = /^\d{1,20}$/
const TIME = String.raw`\d{2}:\d{2}:\d{2}`
/** The three forms of RFC 9110: IMF-fixdate, RFC 850, asctime (which names no zone, but is GMT). */
const HTTP_DATES = [
  RegExp(String.raw`^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} ${TIME} GMT$`),
  RegExp(String.raw`^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} ${TIME} GMT$`),
  RegExp(String.raw`^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d ${TIME} \d{4}$`),
]

/** Seconds or an HTTP date, capped at one hour; nonsense, negative and past mean `undefined`. */
export function parseRetryAfter(
  value: string | null | undefined,
  nowMs: number,
): number | undefined {
  const text = value?.trim()
  if (text === undefined || text.length > 40) return undefined
  if (SECONDS.test(text)) return Math.min(Number(text) * 1000, retryAfterMaxMs)
  if (!HTTP_DATES.some((form) => form.test(text))) return undefined
  const at = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return at > nowMs ? Math.min(at - nowMs, retryAfterMaxMs) : undefined
}
