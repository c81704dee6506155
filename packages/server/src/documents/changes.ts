/** What a change did to each field, from → to, as the audit trail keeps it. Content is kept as hash and length. */
import { type Document, docKeyOf } from './document.ts'

export interface FieldChange {
  readonly from: unknown
  readonly to: unknown
}

export type FieldChanges = Readonly<Record<string, FieldChange>>

/** Undefined before = created, undefined after = deleted. */
export function fieldChanges(before: Document | undefined, after: Document | undefined): FieldChanges {
  const from = flat(before)
  const to = flat(after)
  const changes: Record<string, FieldChange> = {}
  for (const [field, is] of Object.entries(to)) {
    const was = from[field] ?? null
    if (isOther(was, is)) changes[field] = { from: was, to: is }
  }
  for (const [field, was] of Object.entries(from)) {
    if (was !== null && !(field in to)) changes[field] = { from: was, to: null }
  }
  return changes
}

function isOther(was: unknown, is: unknown): boolean {
  if (was === is) return false
  return was === null || is === null || JSON.stringify(was) !== JSON.stringify(is)
}

/** The fields people know by name; nested ones as `customFields.team`, `approvals.17`. */
function flat(document: Document | undefined): Record<string, unknown> {
  if (document === undefined) return {}
  const { summary, content, contentHash } = document
  const fields: Record<string, unknown> = {
    title: document.title,
    docType: document.docType,
    product: document.product,
    status: document.status,
    workspaceProvider: document.workspaceProvider,
    providerFileId: document.providerFileId,
    docKey: docKeyOf(document),
    summary: summary === '' ? null : summary,
    tags: listed(document.tags),
    content: content === '' ? null : { hash: contentHash, length: content.length },
    owners: listed(document.owners.map(({ id }) => id)),
    contributors: listed(document.contributors.map(({ id }) => id)),
    approvers: listed(document.approvers.map(({ id }) => id)),
  }
  for (const [name, value] of Object.entries(document.customFields)) {
    fields[`customFields.${name}`] = value
  }
  for (const { personId, decision, comment } of document.approvals) {
    fields[`approvals.${personId}`] = { decision, comment }
  }
  return fields
}

function listed<T>(values: readonly T[]): readonly T[] | null {
  return values.length === 0 ? null : values
}
