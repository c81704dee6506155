/** Checks a declaration once and brings it into one complete form, the same for every engine. */
import { type Problem, refuse } from '../../check-options.ts'
import { didYouMean } from '../../nearest.ts'
import type { FieldDefinition, IndexDefinition, Weight } from './definition.ts'

export interface ResolvedField {
  readonly name: string
  readonly kind: FieldDefinition['kind']
  /** Its words are searched with this weight. */
  readonly weight: Weight | undefined
  readonly facet: boolean
  readonly displayed: boolean
}

export interface ResolvedDefinition {
  readonly language: string
  readonly fields: readonly ResolvedField[]
}

const INDEX_NAME = /^[a-z][a-z0-9_]{0,39}$/
const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]{0,39}$/
const LANGUAGE = /^[a-z][a-z0-9_]{0,39}$/
const fieldsMax = 200

const OPTIONS: Readonly<Record<FieldDefinition['kind'], readonly string[]>> = {
  text: ['weight'],
  identifier: [],
  keyword: ['facet', 'searchable'],
  number: [],
  date: [],
  stored: [],
}

export function checkIndexName(index: string): void {
  if (typeof index === 'string' && INDEX_NAME.test(index)) return
  const says = 'must be a name: lower case letters, digits and _, at most 40 of them'
  refuse('search index', [{ field: 'index', says }])
}

export function checkDefinition(index: string, given: IndexDefinition): ResolvedDefinition {
  checkIndexName(index)
  const problems: Problem[] = []
  const language = given?.language ?? 'english'
  if (!LANGUAGE.test(language)) problems.push({ field: 'language', says: 'must be a name' })
  const entries = Object.entries(given?.fields ?? {})
  if (entries.length === 0 || entries.length > fieldsMax) {
    problems.push({ field: 'fields', says: `must declare 1 to ${fieldsMax} fields` })
  }
  const fields = entries.map(([name, field]) => resolveField(name, field, problems))
  refuse(`search index ${index}`, problems)
  return Object.freeze({ language, fields: Object.freeze(fields) })
}

function resolveField(name: string, field: FieldDefinition, problems: Problem[]): ResolvedField {
  const at = `fields.${name}`
  if (!FIELD_NAME.test(name)) {
    problems.push({ field: at, says: 'must be named by letters, digits and _, at most 40' })
  }
  const known = OPTIONS[field?.kind]
  if (known === undefined) {
    const kinds = Object.keys(OPTIONS)
    const hint = didYouMean(String(field?.kind), kinds)
    problems.push({ field: `${at}.kind`, says: `must be one of ${kinds.join(', ')}${hint}` })
  } else {
    refuseUnknown(field, at, [...known, 'kind', 'displayed'], problems)
  }
  const weight = weightOf(field)
  if (weight !== undefined && ![1, 2, 3, 4].includes(weight)) {
    problems.push({ field: at, says: 'must have a weight of 1, 2, 3 or 4' })
  }
  const { facet = false, displayed = true } = (field ?? {}) as {
    facet?: boolean
    displayed?: boolean
  }
  return Object.freeze({ name, kind: field?.kind, weight, facet, displayed })
}

function refuseUnknown(field: FieldDefinition, at: string, known: readonly string[], problems: Problem[]): void {
  for (const key of Object.keys(field)) {
    if (known.includes(key)) continue
    const says = `is not an option of a ${field.kind} field${didYouMean(key, known)}`
    problems.push({ field: `${at}.${key}`, says, code: 'HMD_OPTION_UNKNOWN' })
  }
}

function weightOf(field: FieldDefinition): Weight | undefined {
  if (field?.kind === 'text') return field.weight ?? 1
  if (field?.kind === 'identifier') return 4
  return field?.kind === 'keyword' ? field.searchable : undefined
}
