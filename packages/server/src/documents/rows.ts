/** From rows of `hermod.document_whole` to documents. */
import type { WorkspaceProvider } from '../config.ts'
import type { Approval, CustomFields, Document, PersonRef, Relation, Status } from './document.ts'

export interface DocumentRow {
  readonly id: string
  readonly version: string
  readonly status: Status
  readonly doc_type: string
  readonly product: string
  readonly doc_number: number | null
  readonly title: string
  readonly summary: string
  readonly content: string
  readonly content_hash: string
  readonly tags: readonly string[]
  readonly custom_fields: CustomFields
  readonly workspace_provider: WorkspaceProvider
  readonly provider_file_id: string
  readonly created_by: string
  readonly created_by_name: string
  readonly last_modified_by_person_id: string | null
  readonly modified_by_name: string | null
  readonly created_at: Date
  readonly modified_at: Date
  readonly published_at: Date | null
  readonly people: readonly (PersonRef & { readonly relation: Relation })[]
  readonly approvals: readonly (Omit<Approval, 'decidedAt'> & { readonly decidedAt: string })[]
}

/** Everything of a row but its content, which may be a megabyte. */
export const withoutContent = `id, version, status, doc_type, product, doc_number, title, summary, '' as content, content_hash, tags, custom_fields,
  workspace_provider, provider_file_id, created_by, created_by_name, last_modified_by_person_id, modified_by_name, created_at, modified_at,
  published_at, people, approvals`

export function documentOf(row: DocumentRow): Document {
  const { id, version, status, product, title, summary, content, tags } = row
  return {
    id,
    version,
    status,
    product,
    title,
    summary,
    content,
    tags,
    docType: row.doc_type,
    docNumber: row.doc_number,
    contentHash: row.content_hash,
    customFields: row.custom_fields,
    owners: withRelation(row, 'owner'),
    contributors: withRelation(row, 'contributor'),
    approvers: withRelation(row, 'approver'),
    authors: withRelation(row, 'author'),
    approvals: row.approvals.map((approval) => ({
      ...approval,
      decidedAt: new Date(approval.decidedAt),
    })),
    workspaceProvider: row.workspace_provider,
    providerFileId: row.provider_file_id,
    createdBy: { id: row.created_by, displayName: row.created_by_name },
    lastModifiedBy: modifierOf(row),
    createdAt: row.created_at,
    modifiedAt: row.modified_at,
    publishedAt: row.published_at,
  }
}

function modifierOf(row: DocumentRow): PersonRef | null {
  const { last_modified_by_person_id: id, modified_by_name: name } = row
  return id === null ? null : { id, displayName: name ?? '' }
}

function withRelation({ people }: DocumentRow, wanted: Relation): PersonRef[] {
  return people.filter(({ relation }) => relation === wanted).map(({ id, displayName }) => ({ id, displayName }))
}
