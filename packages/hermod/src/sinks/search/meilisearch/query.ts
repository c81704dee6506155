/**
 * Conditions as Meilisearch's filter language. Values are always quoted, so whatever is in them is a
 * value; a condition that nothing can fulfil is told apart, never left out.
 */
import type { Comparison, Condition } from '../check-request.ts'
import { exactValue } from './document.ts'
import { exactField, numericField } from './schema.ts'

/** Undefined: no condition. */
export function filterOf(conditions: readonly Condition[]): string | undefined {
  const parts = conditions.filter((one) => !isEverything(one)).map(expression)
  return parts.length === 0 ? undefined : parts.join(' AND ')
}

/** No document can match: there is nothing to ask. */
export function isHopeless(conditions: readonly Condition[]): boolean {
  return conditions.some((one) => 'anyOf' in one && one.anyOf.length === 0)
}

const isEverything = (one: Condition) => 'noneOf' in one && one.noneOf.length === 0

const OPERATORS: Readonly<Record<Comparison, string>> = {
  from: '>=',
  to: '<=',
  above: '>',
  below: '<',
}

/** NOT holds for documents without the field as well. */
function expression(condition: Condition): string {
  const { field } = condition
  if ('is' in condition) {
    return `${numericField(field)} ${OPERATORS[condition.is]} ${decimal(condition.bound)}`
  }
  const name = exactField(field.name)
  if ('anyOf' in condition) return `${name} IN [${quoted(condition.anyOf)}]`
  return `NOT ${name} IN [${quoted(condition.noneOf)}]`
}

function quoted(values: readonly string[]): string {
  return values.map((value) => `"${exactValue(value)}"`).join(', ')
}

/** Never with an exponent. */
function decimal(bound: number): string {
  const text = String(bound)
  return /e/i.test(text) ? bound.toFixed(Math.abs(bound) < 1 ? 20 : 0) : text
}
