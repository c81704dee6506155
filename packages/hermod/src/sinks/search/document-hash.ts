/**
 * A document's content as one short text: equal for equal content, whatever the order of keys and
 * the spacing. `verify` compares it without reading documents.
 */
import { createHash } from 'node:crypto'

export function documentHash(document: unknown): string {
  return createHash('sha256').update(canonical(document)).digest('base64url').slice(0, 22)
}

/** JSON with sorted keys; half a surrogate pair is U+FFFD, as engines store it. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value === 'number') return String(steady(value))
  if (typeof value === 'string') return JSON.stringify(value.toWellFormed())
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const record = value as Record<string, unknown>
  const entries = Object.keys(record)
    .sort()
    .filter((key) => record[key] !== undefined)
    .map((key) => `${JSON.stringify(key)}:${canonical(record[key])}`)
  return `{${entries.join(',')}}`
}

/** Some engines change the last digit of a fraction. JSON knows no infinity. */
function steady(value: number): number | null {
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value
  return Number.isFinite(value) ? Number(value.toPrecision(15)) : null
}
