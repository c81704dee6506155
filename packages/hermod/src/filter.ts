/**
 * Which events a subscription hears. A pattern is an exact type, `noun.*` (everything below, at
 * any depth) or `*`. TypeScript and SQL must agree, so both forms are made here.
 */
import { HermodError } from './errors.ts'

export interface Filter {
  readonly types: readonly string[]
  readonly aggregates?: readonly string[] | undefined
}

const PATTERN = /^(?:\*|[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*(?:\.\*|\.[a-z][a-z0-9_]*))$/
const patternBytesMax = 130

/** What is wrong with a pattern, or undefined. */
export function validatePattern(pattern: unknown): string | undefined {
  if (typeof pattern !== 'string') return 'must be a string'
  if (pattern.length > patternBytesMax) return `must be at most ${patternBytesMax} bytes`
  if (!PATTERN.test(pattern)) {
    return 'must be an event type (document.updated), everything below a noun (document.*) or *'
  }
  return undefined
}

export function matches(patterns: readonly string[], type: string): boolean {
  return patterns.some((pattern) => matchesOne(pattern, type))
}

function matchesOne(pattern: string, type: string): boolean {
  if (pattern === '*') return true
  if (!pattern.endsWith('.*')) return pattern === type
  return type.length >= pattern.length && type.startsWith(pattern.slice(0, -1))
}

/** Remembers its answer per type: a system has few types and many events. */
export function compileFilter(filter: Filter): (type: string, aggregateType: string) => boolean {
  for (const pattern of filter.types) refuseInvalid(pattern)
  const { types } = filter
  const aggregates = filter.aggregates && new Set(filter.aggregates)
  const known = new Map<string, boolean>()
  const matchesType = (type: string): boolean => {
    const answer = known.get(type) ?? matches(types, type)
    if (known.size < 10_000) known.set(type, answer)
    return answer
  }
  return (type, aggregateType) => matchesType(type) && (aggregates === undefined || aggregates.has(aggregateType))
}

/** LIKE patterns (escape `\`, the default) for `type like any ($1::text[])`. */
export function filterToSql(types: readonly string[]): string[] {
  return types.map((pattern) => {
    refuseInvalid(pattern)
    if (pattern === '*') return '%'
    return pattern.replaceAll('_', String.raw`\_`).replace(/\*$/, '_%')
  })
}

function refuseInvalid(pattern: string): void {
  const problem = validatePattern(pattern)
  if (problem === undefined) return
  throw new HermodError('HMD_OPTION_INVALID', `types: ${JSON.stringify(pattern)} ${problem}`, {
    field: 'types',
  })
}
