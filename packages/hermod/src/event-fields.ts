/** The optional fields of an event: headers, `notBefore`, idempotency key. Checked, then text. */
import { HermodError } from './errors.ts'
import { unlistableText, unstorableText } from './payload.ts'

export const headersMax = 64
export const headerValueBytesMax = 2048
export const keyBytesMax = 200
const aheadYearsMax = 10

const HEADER_NAME = /^[a-z0-9_.-]{1,64}$/i
/** An ISO time with its zone: without one it would mean another instant on another machine. */
const ISO_TIME = /^(\d{4})-(\d{2})-(\d{2})[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/

export function invalid(field: string, says: string): HermodError {
  return new HermodError('HMD_EVENT_INVALID', `${field} ${says}`, { field })
}

/** Names are compared without case, so they are stored in lower case. */
export function headersToText(headers: unknown, field: string): string | null {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    throw invalid(field, 'must be an object of names and strings')
  }
  const entries = Object.entries(headers)
  if (entries.length > headersMax) throw invalid(field, `must have at most ${headersMax} entries`)
  for (const entry of entries) {
    const [name, value] = entry
    const problem = headerProblem(name, value)
    if (problem !== undefined) throw invalid(`${field}.${name.slice(0, 64)}`, problem)
    entry[0] = name.toLowerCase()
  }
  const lower = Object.fromEntries(entries)
  if (Object.keys(lower).length < entries.length) {
    throw invalid(field, 'must not name the same header twice, in different case')
  }
  return entries.length === 0 ? null : JSON.stringify(lower)
}

function headerProblem(name: string, value: unknown): string | undefined {
  if (!HEADER_NAME.test(name)) return 'must be named with 1 to 64 of [a-z0-9_.-]'
  if (typeof value !== 'string') return 'must be a string'
  if (isLongerThan(value, headerValueBytesMax)) return `must be at most ${headerValueBytesMax} bytes`
  if (/[\r\n]/.test(value)) return 'must not hold CR or LF'
  return unstorableText(value)
}

/** UTF-8 needs at most three bytes per UTF-16 unit, so most texts need no counting. */
export function isLongerThan(text: string, bytesMax: number): boolean {
  return text.length * 3 > bytesMax && Buffer.byteLength(text) > bytesMax
}

export function notBeforeToText(value: unknown, field: string, nowMs: number): string {
  const time = timeOf(value)
  if (time === undefined) {
    throw invalid(field, 'must be a valid Date or an ISO time with its zone (2027-01-31T08:00:00Z)')
  }
  const limit = new Date(nowMs)
  limit.setUTCFullYear(limit.getUTCFullYear() + aheadYearsMax)
  if (time > limit.getTime()) throw invalid(field, `must be at most ${aheadYearsMax} years ahead`)
  if (time < 0) throw invalid(field, 'must not be before 1970')
  return new Date(time).toISOString()
}

/** Milliseconds of a Date or of an ISO time with its zone; undefined for everything else. */
export function timeOf(value: unknown): number | undefined {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? undefined : value.getTime()
  if (typeof value !== 'string') return undefined
  const [, year, month, day] = ISO_TIME.exec(value) ?? []
  if (year === undefined || !isDayOf(Number(year), Number(month), Number(day))) return undefined
  const time = Date.parse(value.replace(' ', 'T'))
  return Number.isNaN(time) ? undefined : time
}

/** Date.parse() would move 30 February to March. */
function isDayOf(year: number, month: number, day: number): boolean {
  return day >= 1 && day <= new Date(Date.UTC(year, month, 0)).getUTCDate()
}

export function keyToText(key: unknown, field: string): string {
  if (typeof key !== 'string') throw invalid(field, 'must be a string')
  if (key === '') throw invalid(field, 'must not be empty')
  if (isLongerThan(key, keyBytesMax)) throw invalid(field, `must be at most ${keyBytesMax} bytes`)
  const problem = unlistableText(key)
  if (problem !== undefined) throw invalid(field, problem)
  return key
}
