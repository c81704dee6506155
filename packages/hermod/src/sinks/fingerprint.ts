/**
 * Groups failures that are the same failure: sink, status or code, and the message with
 * everything that differs from event to event taken out. Never the payload.
 */
import { clean } from '../foreign-text.ts'
import type { Outcome } from './outcome.ts'

export const fingerprintCharsMax = 200

/** Every expression is linear, and the message is cut before they run. */
const VARYING: readonly [RegExp, string][] = [
  [/\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"'`<>]+/gi, '<url>'],
  [/"[^"]*"|`[^`]*`|(?<![\p{L}\p{N}])'[^']*'/gu, '<text>'],
  [/[^\s@<>"']{1,64}@[^\s@<>"']{1,255}/g, '<address>'],
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, '<id>'],
  [/\b(?=[0-9a-z_-]*\d)[0-9a-z_-]{12,}\b/gi, '<id>'],
  [/\d+(?:[.,:]\d+)*/g, '<n>'],
  [/\s+/g, ' '],
]

export function fingerprint(sinkName: string, outcome: Outcome): string {
  let message = (outcome.message ?? '').slice(0, 500)
  for (const [varying, placeholder] of VARYING) message = message.replace(varying, placeholder)
  const reason = [outcome.status, outcome.code].filter((part) => part !== undefined).join(' ')
  const parts = [sinkName, reason || outcome.outcome, message.trim()].filter((part) => part !== '')
  // Cut first: the cut may go through a surrogate pair.
  return clean(parts.join(' | ').slice(0, fingerprintCharsMax))
}
