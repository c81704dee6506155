/** What a change did to each field, from → to, as the audit trail keeps it. Content is kept as hash and length. */
import { type Document, docKeyOf } from './document.ts'

export interface FieldChange {
  readonly from: unknown
  readonly to: unknown
}

export type FieldChanges = Readonly<Record<string, FieldChange>>

/** Undefined before = created, undefined after = deleted. */
export function fieldChanges(
  before: Document | undefined,
  after: Document | undefined,
): FieldChanges {
  const from = flat(before)
  const to = flat(after)
  const changes: Record<string, FieldChange> = {}
  for (const field of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const [was, is] = [from[field] ?? null, to[field] ?? null]
    if (JSON.stringify(was) !== JSON.stringify(is)) changes[field] = { from: was, to: is }
  }
  return changes
}

/** The fields people know by name; nested ones as `customFields.team`, `approvals.17`. */
function flat(document: Document | undefined): Record<string, unknown> {
  if (document === undefined) return {}
  const { title, docType, product, summary, tags, status, content, contentHash } = document
  const { workspaceProvider, providerFileId, customFields, approvals } = document
  return {
    ...{ title, docType, product, status, workspaceProvider, providerFileId },
    docKey: docKeyOf(document),
    summary: summary === '' ? null : summary,
    tags: listed(tags),
    content: content === '' ? null : { hash: contentHash, length: content.length },
    owners: listed(document.owners.map(({ id }) => id)),
    contributors: listed(document.contributors.map(({ id }) => id)),
    approvers: listed(document.approvers.map(({ id }) => id)),
    ...prefixed('customFields', Object.entries(customFields)),
    ...prefixed(
      'approvals',
      approvals.map(({ personId, decision, comment }) => [personId, { decision, comment }]),
    ),
  }
}

function listed<T>(values: readonly T[]): readonly T[] | null {
  return values.length === 0 ? null : values
}

function prefixed(
  name: string,
  entries: readonly (readonly [string, unknown])[],
): Record<string, unknown> {
  return Object.fromEntries(entries.map(([key, value]) => [`${name}.${key}`, value]))
}
