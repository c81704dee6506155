/** How a declaration differs from the one an index was made with. */
import type { ResolvedDefinition } from './check-definition.ts'

/** `displayed`: only what comes back with the hits; no document has to be touched. */
export type DefinitionChange = 'none' | 'displayed' | 'rebuild'

export function compareDefinitions(was: ResolvedDefinition, now: ResolvedDefinition): DefinitionChange {
  if (same(was, now)) return 'none'
  return same(undisplayed(was), undisplayed(now)) ? 'displayed' : 'rebuild'
}

function undisplayed(definition: ResolvedDefinition): ResolvedDefinition {
  return { ...definition, fields: definition.fields.map((f) => ({ ...f, displayed: true })) }
}

/** Fields in any order mean the same. */
function same(a: ResolvedDefinition, b: ResolvedDefinition): boolean {
  const sorted = ({ language, fields }: ResolvedDefinition) =>
    JSON.stringify([
      language,
      fields
        .map(({ name, kind, weight, facet, displayed }) => [name, kind, weight, facet, displayed])
        .sort(([one], [other]) => (String(one) < String(other) ? -1 : 1)),
    ])
  return sorted(a) === sorted(b)
}
