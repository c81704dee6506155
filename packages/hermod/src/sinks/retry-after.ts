/** The header `Retry-After`: how long a destination asks to be left alone. */
export const retryAfterMaxMs = 3_600_000

const SECONDS = /^\d{1,20}$/
const TIME = String.raw`\d{2}:\d{2}:\d{2}`
/** The three forms of RFC 9110: IMF-fixdate, RFC 850, asctime (which names no zone, but is GMT). */
const HTTP_DATES = [
  RegExp(String.raw`^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} ${TIME} GMT$`),
  RegExp(String.raw`^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} ${TIME} GMT$`),
  RegExp(String.raw`^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d ${TIME} \d{4}$`),
]

/** Seconds or an HTTP date, capped at one hour; nonsense, negative and past mean `undefined`. */
export function parseRetryAfter(value: string | null | undefined, nowMs: number): number | undefined {
  const text = value?.trim()
  if (text === undefined || text.length > 40) return undefined
  if (SECONDS.test(text)) return Math.min(Number(text) * 1000, retryAfterMaxMs)
  if (!HTTP_DATES.some((form) => form.test(text))) return undefined
  const at = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return at > nowMs ? Math.min(at - nowMs, retryAfterMaxMs) : undefined
}
