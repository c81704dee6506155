/** The health of a subscription: one word, since when, and why, in a sentence a person can act on. */
import type { Row } from '../database.ts'
import { time } from './audit.ts'

export const healthWords = ['ok', 'behind', 'unavailable', 'misconfigured', 'paused', 'disabled', 'dry-run'] as const

export type HealthWord = (typeof healthWords)[number]

export interface Health {
  readonly word: HealthWord
  /** Null while it is ok. */
  readonly since: Date | null
  readonly why: string
}

export interface HealthFacts {
  /** Mode and breaker, as the subscription's row has them. */
  readonly row: Row
  readonly at: Date
  readonly oldestPendingAgeMs: number | null
  readonly behindMs: number
  readonly workers: number
  readonly pending: number | null
}

/** An operator's decision counts first, then the destination, then the age of the backlog. */
export function healthOf(facts: HealthFacts): Health {
  const { row } = facts
  if (row.mode !== 'live') return byMode(row)
  if (row.held_cause !== null) {
    const why = row.held_says ?? `the destination is ${row.held_cause}`
    return { word: row.held_cause as HealthWord, since: time(row.held_since), why }
  }
  return byAge(facts)
}

function byMode(row: Row): Health {
  const word = row.mode === 'paused' ? 'paused' : 'dry-run'
  const by = row.mode_by === null ? '' : ` by ${row.mode_by}`
  const says = row.mode_says === null ? '' : `: ${row.mode_says}`
  return { word, since: time(row.mode_since), why: `${word}${by}${says}` }
}

function byAge({ row, at, oldestPendingAgeMs, behindMs, workers, pending }: HealthFacts): Health {
  const waiting = oldestPendingAgeMs ?? 0
  const unserved = workers === 0 && (pending ?? 0) > 0
  // Without a worker nothing is numbered, so the age counts from the last heartbeat.
  const idleMs = unserved ? at.getTime() - (time(row.served_at)?.getTime() ?? 0) : 0
  const ageMs = Math.max(waiting, idleMs)
  if (ageMs <= behindMs) return { word: 'ok', since: null, why: 'keeping up' }
  const since = new Date(at.getTime() - ageMs + behindMs)
  const nobody = row.kind_missing === 'true' ? `no worker has its kind of sink, ${row.kind}` : 'no worker serves it'
  const cause = unserved ? nobody : `${pending ?? 'an unknown number of'} pending`
  return { word: 'behind', since, why: `${cause}; the oldest waits ${duration(ageMs)}` }
}

/** `850 ms`, `12.4 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  const units: [number, string][] = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'min'],
    [1, 's'],
  ]
  let seconds = Math.round(ms / 1_000)
  const parts: string[] = []
  for (const [size, name] of units) {
    const n = Math.floor(seconds / size)
    if (n > 0 || parts.length > 0) parts.push(`${n} ${name}`)
    seconds -= n * size
  }
  return parts
    .slice(0, 2)
    .join(' ')
    .replace(/ 0 \w+$/, '')
}
