/** Checks that the people named in a request exist. */
import type { Tx } from '../platform.ts'
import { type FieldProblem, Problem } from '../problems.ts'
import type { DocumentPeople, PersonRef } from './document.ts'

export interface NamedPeople {
  readonly owners: readonly string[]
  readonly contributors: readonly string[]
  readonly approvers: readonly string[]
}

const roles = ['owners', 'contributors', 'approvers'] as const

export type Known = ReadonlyMap<string, PersonRef>

/** Shared locks: nobody can be merged away before the commit. */
export const KNOWN = `select p.id::text, p.display_name as "displayName" from hermod.person p
  where p.id = any ($1::bigint[]) and p.deleted_at is null for share`

export async function knownPeople(tx: Tx, ids: readonly string[]): Promise<Known> {
  if (ids.length === 0) return new Map()
  const { rows } = await tx.query<PersonRef>(KNOWN, [ids])
  return new Map(rows.map((person) => [person.id, person]))
}

/** All that is wrong with the lists, at once: unknown people, no owner, an owner who approves. */
export function namedPeople(
  named: NamedPeople,
  known: Known,
  at: (pointer: string) => string = (pointer) => pointer,
): DocumentPeople {
  const errors: FieldProblem[] = []
  if (named.owners.length === 0) {
    errors.push({ pointer: at('/owners'), detail: 'must name at least one person' })
  }
  for (const role of roles) {
    for (const [place, id] of named[role].entries()) {
      if (known.has(id)) continue
      errors.push({ pointer: at(`/${role}/${place}`), detail: `names nobody: ${id}` })
    }
  }
  for (const [place, id] of named.approvers.entries()) {
    if (!named.owners.includes(id)) continue
    const detail = 'is an owner; nobody decides about their own document'
    errors.push({ pointer: at(`/approvers/${place}`), detail })
  }
  if (errors.length > 0) throw brokenRules(errors)
  const refs = (ids: readonly string[]) => ids.flatMap((id) => known.get(id) ?? [])
  return {
    owners: refs(named.owners),
    contributors: refs(named.contributors),
    approvers: refs(named.approvers),
  }
}

export function brokenRules(errors: readonly FieldProblem[]): Problem {
  const says = errors.map(({ pointer, detail }) => `${pointer} ${detail}`).join('; ')
  return new Problem('HMD_RULE_BROKEN', says, { errors })
}

/** Each person once. */
export function everybodyIn({ owners, contributors, approvers }: NamedPeople): string[] {
  return [...new Set([...owners, ...contributors, ...approvers])]
}
