/** The conditions of a request as SQL; every value is a parameter. */
import type { Comparison, Condition } from '../check-request.ts'
import { keyOf } from './document.ts'
import type { Asked } from './query.ts'
import { numberColumn } from './schema.ts'

/** Collects parameters and gives each its place. */
export class Params {
  readonly values: unknown[] = []

  add(value: unknown): string {
    return `$${this.values.push(value)}`
  }
}

const OPERATORS: Readonly<Record<Comparison, string>> = {
  from: '>=',
  to: '<=',
  above: '>',
  below: '<',
}

export function conditionSql(condition: Condition, params: Params): string {
  const { field } = condition
  if ('is' in condition) {
    const bound = params.add(condition.bound)
    return `d.${numberColumn(field.name)} ${OPERATORS[condition.is]} ${bound}::float8`
  }
  const values = 'anyOf' in condition ? condition.anyOf : condition.noneOf
  const keys = params.add(values.map((value) => keyOf(field.name, value)))
  const holds = `d.keys && ${keys}::text[]`
  return 'anyOf' in condition ? holds : `not (${holds})`
}

export function allSql(conditions: readonly Condition[], params: Params): string {
  return conditions.map((condition) => ` and ${conditionSql(condition, params)}`).join('')
}

/** The documents a query finds. */
export function matchSql(language: string, { query, wholeWords }: Asked, params: Params): string {
  if (query === undefined) return 'true'
  const of = (text: string) => `to_tsquery('pg_catalog.${language}', ${params.add(text)})`
  if (wholeWords === undefined) return `d.words @@ ${of(query)}`
  return `(d.heading @@ ${of(query)} or d.words @@ ${of(wholeWords)})`
}
