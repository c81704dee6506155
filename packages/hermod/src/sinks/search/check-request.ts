/**
 * Checks a request against the declaration before anything is searched. Whatever cannot be applied
 * is refused: a filter that silently fell away would show what it was meant to hide.
 */
import { got, type Problem, refuse } from '../../check-options.ts'
import { timeOf } from '../../event-fields.ts'
import { didYouMean } from '../../nearest.ts'
import type { ResolvedDefinition, ResolvedField } from './check-definition.ts'
import type { Filter, Filters, SearchRequest } from './request.ts'

export type Comparison = 'from' | 'to' | 'above' | 'below'

/** One condition on one field; numbers for ranges, texts for the rest. */
export type Condition =
  | { readonly field: ResolvedField; readonly anyOf: readonly string[] }
  | { readonly field: ResolvedField; readonly noneOf: readonly string[] }
  | { readonly field: ResolvedField; readonly is: Comparison; readonly bound: number }

export interface ResolvedRequest {
  readonly query: string
  readonly conditions: readonly Condition[]
  readonly facets: readonly string[]
  readonly sort: readonly { readonly field: string; readonly ascending: boolean }[]
  readonly highlights: readonly string[]
  readonly offset: number
  readonly limit: number
  readonly countMax: number
}

const KEYS = [
  ...['query', 'filters', 'facets', 'sort', 'highlights', 'offset', 'limit', 'countMax'],
  ...['generation', 'signal'],
]
const COMPARISONS = ['from', 'to', 'above', 'below'] as const
const offsetMax = 100_000
const limitMax = 1_000
const countMaxMax = 1_000_000
const valuesMax = 10_000

export function checkRequest(index: string, definition: ResolvedDefinition, given: SearchRequest): ResolvedRequest {
  const problems: Problem[] = []
  const fields = new Map(definition.fields.map((field) => [field.name, field]))
  const reader = new Reader(fields, problems)
  for (const key of Object.keys(given)) {
    if (KEYS.includes(key)) continue
    const says = `is not part of a search${didYouMean(key, KEYS)}`
    problems.push({ field: key, says, code: 'HMD_OPTION_UNKNOWN' })
  }
  if (given.query !== undefined && typeof given.query !== 'string') {
    problems.push({ field: 'query', says: `must be a text${got(given.query)}` })
  }
  const request = {
    query: typeof given.query === 'string' ? given.query : '',
    conditions: reader.conditions(given.filters),
    facets: reader.names(given.facets, 'facets', ({ facet }) => facet),
    sort: reader.sort(given.sort),
    highlights: reader.names(given.highlights, 'highlights', ({ weight }) => weight !== undefined),
    offset: reader.integer(given.offset, 'offset', { min: 0, max: offsetMax, fallback: 0 }),
    limit: reader.integer(given.limit, 'limit', { min: 0, max: limitMax, fallback: 20 }),
    countMax: reader.integer(given.countMax, 'countMax', {
      min: 1,
      max: countMaxMax,
      fallback: 10_000,
    }),
  }
  refuse(`search in ${index}`, problems)
  return request
}

class Reader {
  readonly #fields: ReadonlyMap<string, ResolvedField>
  readonly #problems: Problem[]

  constructor(fields: ReadonlyMap<string, ResolvedField>, problems: Problem[]) {
    this.#fields = fields
    this.#problems = problems
  }

  integer(
    value: unknown,
    field: string,
    { min, max, fallback }: { min: number; max: number; fallback: number },
  ): number {
    const given = value === undefined ? fallback : value
    if (Number.isInteger(given) && (given as number) >= min && (given as number) <= max) {
      return given as number
    }
    this.#refuse(field, `must be a whole number from ${min} to ${max}${got(given)}`)
    return fallback
  }

  names(given: unknown, at: string, fits: (field: ResolvedField) => boolean): string[] {
    if (given === undefined) return []
    if (!Array.isArray(given)) this.#refuse(at, 'must be a list of fields')
    const names = Array.isArray(given) ? [...new Set(given.map(String))] : []
    for (const name of names) {
      const field = this.#field(name, at)
      if (field !== undefined && !fits(field)) this.#refuse(at, `${name} is not declared for this`)
    }
    return names
  }

  sort(given: SearchRequest['sort']): { field: string; ascending: boolean }[] {
    if (given !== undefined && !Array.isArray(given)) this.#refuse('sort', 'must be a list')
    return (Array.isArray(given) ? given : []).map(({ field: name, direction = 'ascending' }) => {
      const field = this.#field(name, 'sort')
      if (field !== undefined && !isNumeric(field)) {
        this.#refuse('sort', `${name} is no number or date field`)
      }
      if (direction !== 'ascending' && direction !== 'descending') {
        this.#refuse('sort', 'must be ascending or descending')
      }
      return { field: name, ascending: direction === 'ascending' }
    })
  }

  conditions(given: Filters | undefined): Condition[] {
    if (given === undefined) return []
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      this.#refuse('filters', `must be an object${got(given)}`)
      return []
    }
    return Object.entries(given).flatMap(([name, filter]) => {
      const at = `filters.${name}`
      const field = this.#field(name, at)
      return field === undefined ? [] : this.#condition(field, filter, at)
    })
  }

  #condition(field: ResolvedField, filter: Filter, at: string): Condition[] {
    if (isNumeric(field)) return this.#numeric(field, filter, at)
    if (field.kind !== 'keyword' && field.kind !== 'identifier') {
      this.#refuse(at, `is a ${field.kind} field and cannot be filtered`)
      return []
    }
    if (isValue(filter)) return [{ field, anyOf: [String(filter)] }]
    const { anyOf, noneOf, ...rest } = (filter ?? {}) as { anyOf?: unknown; noneOf?: unknown }
    const one = (anyOf === undefined) !== (noneOf === undefined)
    const values = (anyOf ?? noneOf) as unknown
    if (!one || Object.keys(rest).length > 0 || !Array.isArray(values) || !values.every(isValue)) {
      this.#refuse(at, `must be a value, { anyOf: […] } or { noneOf: […] }${got(filter)}`)
      return []
    }
    if (values.length > valuesMax) this.#refuse(at, `has more than ${valuesMax} values`)
    const texts = values.map(String)
    return [anyOf === undefined ? { field, noneOf: texts } : { field, anyOf: texts }]
  }

  #numeric(field: ResolvedField, filter: Filter, at: string): Condition[] {
    const range = typeof filter === 'object' && !(filter instanceof Date) ? filter : undefined
    const bounds = range === undefined ? { from: filter, to: filter } : { ...range }
    const keys = Object.keys(bounds)
    if (keys.length === 0 || !keys.every((key) => COMPARISONS.includes(key as Comparison))) {
      this.#refuse(at, 'must be a value or a range: from, to, above, below')
      return []
    }
    return keys.map((key) => {
      const bound = numberOf(field, (bounds as Record<string, unknown>)[key])
      if (bound === undefined) this.#refuse(at, `${key} must be a ${field.kind}`)
      return { field, is: key as Comparison, bound: bound ?? 0 }
    })
  }

  #field(name: string, at: string): ResolvedField | undefined {
    const field = this.#fields.get(name)
    if (field === undefined) {
      this.#refuse(at, `${name} is not declared${didYouMean(String(name), this.#fields.keys())}`)
    }
    return field
  }

  #refuse(field: string, says: string): void {
    this.#problems.push({ field, says })
  }
}

export function isNumeric({ kind }: ResolvedField): boolean {
  return kind === 'number' || kind === 'date'
}

/** A number as it is compared and sorted: dates are milliseconds since 1970. */
export function numberOf({ kind }: ResolvedField, value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (kind !== 'date') return undefined
  return value instanceof Date || typeof value === 'string' ? timeOf(value) : undefined
}

function isValue(value: unknown): value is string | number | boolean {
  return ['string', 'number', 'boolean'].includes(typeof value)
}
