/** The nouns of the room: a document through its whole life, and the people it has. */
import type { WorkspaceProvider } from '../config.ts'

export const statuses = ['WIP', 'In-Review', 'Approved', 'Obsolete'] as const
export type Status = (typeof statuses)[number]

export const relations = ['owner', 'contributor', 'approver', 'author'] as const
export type Relation = (typeof relations)[number]

export interface PersonRef {
  readonly id: string
  readonly displayName: string
}

export const decisions = ['approved', 'changes-requested'] as const
export type Decision = (typeof decisions)[number]

export interface Approval {
  readonly personId: string
  readonly decision: Decision
  readonly comment: string
  readonly decidedAt: Date
}

export type CustomValue = string | number | boolean | readonly string[]
export type CustomFields = Readonly<Record<string, CustomValue>>

/** What people write. */
export interface DocumentFields {
  readonly title: string
  readonly docType: string
  readonly product: string
  readonly summary: string
  readonly content: string
  readonly tags: readonly string[]
  readonly customFields: CustomFields
}

export interface DocumentPeople {
  readonly owners: readonly PersonRef[]
  readonly contributors: readonly PersonRef[]
  readonly approvers: readonly PersonRef[]
}

/** A draft is a document that was never published: status WIP, no number. */
export interface Document extends DocumentFields, DocumentPeople {
  readonly id: string
  readonly version: string
  readonly status: Status
  readonly docNumber: number | null
  readonly contentHash: string
  /** Who wrote what is under review now, since it was last approved; the creator is not repeated here. */
  readonly authors: readonly PersonRef[]
  readonly approvals: readonly Approval[]
  readonly workspaceProvider: WorkspaceProvider
  readonly providerFileId: string
  readonly createdBy: PersonRef
  readonly lastModifiedBy: PersonRef | null
  readonly createdAt: Date
  readonly modifiedAt: Date
  readonly publishedAt: Date | null
}

export function isDraft({ publishedAt }: Pick<Document, 'publishedAt'>): boolean {
  return publishedAt === null
}

/** How people name a published document: product and number, `Labs-051`. */
export function docKeyOf({ product, docNumber }: Pick<Document, 'product' | 'docNumber'>) {
  return docNumber === null ? null : `${product}-${String(docNumber).padStart(3, '0')}`
}

/** Owners and contributors: those who see a draft. */
export function insidersOf({ owners, contributors }: DocumentPeople): string[] {
  return [...new Set([...owners, ...contributors].map(({ id }) => id))]
}
