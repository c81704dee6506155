/** From the query of a request to a question for the engine. What cannot be applied is refused by name. */
import type { Filter, Filters, Range, Sort } from 'hermod/sinks/search'
import { type FieldProblem, Problem } from '../problems.ts'
import { type SearchField, searchDefinition } from '../search-definition.ts'
import { isTime } from '../times.ts'

/** `people` decides who finds a draft: it is ours to set. */
const fields = new Map(Object.entries(searchDefinition.fields).filter(([name]) => name !== 'people'))
type Kind = 'text' | 'identifier' | 'keyword' | 'number' | 'date' | 'stored'

const namesOf = (kinds: readonly Kind[]): string[] =>
  [...fields].filter(([, { kind }]) => kinds.includes(kind)).map(([name]) => name)

export const exactFields = namesOf(['keyword', 'identifier'])
export const rangeFields = namesOf(['number', 'date'])
export const facetFields = [...fields].filter(([, field]) => 'facet' in field).map(([name]) => name)

const comparisons = { '>=': 'from', '<=': 'to', '>': 'above', '<': 'below' } as const

const FILTER = /^([A-Za-z]+)(>=|<=|>|<|:)(.+)$/s

/** `status:Approved` (repeated = or), `modifiedAt>=2026-01-01T00:00:00Z` (all hold). */
export function filtersOf(given: readonly string[]): Filters {
  const problems: FieldProblem[] = []
  const exact = new Map<string, string[]>()
  const ranges = new Map<string, Record<string, string | number>>()
  given.forEach((text, place) => {
    const problem = readFilter(text, exact, ranges)
    if (problem !== undefined) problems.push({ pointer: `?filter/${place}`, detail: problem })
  })
  refuse(problems)
  const filters: Record<string, Filter> = {}
  for (const [field, anyOf] of exact) filters[field] = { anyOf }
  for (const [field, range] of ranges) filters[field] = range as Range
  return filters
}

function readFilter(
  text: string,
  exact: Map<string, string[]>,
  ranges: Map<string, Record<string, string | number>>,
): string | undefined {
  const [, field = '', sign = '', value = ''] = FILTER.exec(text) ?? []
  if (field === '') return 'must be field:value or field>=value'
  if (sign === ':') {
    if (!exactFields.includes(field)) return `${field} must be one of ${exactFields.join(', ')}`
    exact.set(field, [...(exact.get(field) ?? []), value])
    return undefined
  }
  if (!rangeFields.includes(field)) return `${field} must be one of ${rangeFields.join(', ')}`
  const bound = boundOf(field, value)
  if (bound === undefined) return `${value} is not a ${fields.get(field)?.kind} for ${field}`
  const comparison = comparisons[sign as keyof typeof comparisons]
  ranges.set(field, { ...ranges.get(field), [comparison]: bound })
  return undefined
}

function boundOf(field: string, value: string): string | number | undefined {
  if (fields.get(field)?.kind === 'date') {
    return isTime(value) ? value : undefined
  }
  return /^-?\d{1,15}$/.test(value) ? Number(value) : undefined
}

/** `facets=status,product` or repeated. */
export function facetsOf(given: readonly string[]): string[] {
  return known(given, facetFields, 'facets')
}

/** `sort=-modifiedAt`: descending with a minus. */
export function sortOf(given: readonly string[]): Sort[] {
  const down = new Set(given.flatMap(split).filter((name) => name.startsWith('-')))
  return known(given, rangeFields, 'sort').map((field) => ({
    field,
    direction: down.has(`-${field}`) ? 'descending' : 'ascending',
  }))
}

const split = (text: string): string[] => text.split(',').filter((name) => name !== '')

function known(given: readonly string[], allowed: readonly string[], parameter: string): string[] {
  const names = given.flatMap(split).map((name) => name.replace(/^-/, ''))
  refuse(
    names
      .filter((name) => !allowed.includes(name))
      .map((name) => ({
        pointer: `?${parameter}`,
        detail: `${name} must be one of ${allowed.join(', ')}`,
      })),
  )
  return [...new Set(names)]
}

function refuse(errors: readonly FieldProblem[]): void {
  if (errors.length === 0) return
  const detail = errors.map(({ pointer, detail }) => `${pointer} ${detail}`).join('; ')
  throw new Problem('HMD_REQUEST_INVALID', detail, { errors })
}

export const highlighted: readonly SearchField[] = ['title', 'summary', 'content']
