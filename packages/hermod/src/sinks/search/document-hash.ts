/**
 * A document's content as one short text: equal for equal content, whatever the order of keys and
 * the spacing. `verify` compares it without reading documents.
 */
import { createHash } from 'node:crypto'

export function documentHash(document: unknown): string {
  return createHash('sha256').update(canonical(document)).digest('base64url').slice(0, 22)
}

/** JSON with sorted keys. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const record = value as Record<string, unknown>
  const entries = Object.keys(record)
    .sort()
    .filter((key) => record[key] !== undefined)
    .map((key) => `${JSON.stringify(key)}:${canonical(record[key])}`)
  return `{${entries.join(',')}}`
}
