/**
 * A document as search engines get it. It is the payload of every event. `search-definition.ts` says what
 * each of its fields is for.
 */
import type { SearchField } from '../search-definition.ts'
import { type Document, docKeyOf, insidersOf } from './document.ts'

/** Events above this carry no payload: the row is read when they are delivered. */
export const payloadBytesMax = 200_000

/** Fields without a value are left out. */
export type SearchDocument = Readonly<Partial<Record<SearchField, unknown>>> & {
  readonly version: string
}

/** Written field by field: of spreads it would take fifteen times as long, and every change needs one. */
export function searchDocument(document: Document): SearchDocument {
  const { docNumber, lastModifiedBy, publishedAt } = document
  const whole: Partial<Record<SearchField, unknown>> & { version: string } = {
    title: document.title,
    summary: document.summary,
    content: document.content,
    status: document.status,
    docType: document.docType,
    product: document.product,
    tags: document.tags,
    customFields: document.customFields,
    workspaceProvider: document.workspaceProvider,
    providerFileId: document.providerFileId,
    version: document.version,
    owners: document.owners.map(idOf),
    ownerNames: document.owners.map(({ displayName }) => displayName),
    contributors: document.contributors.map(idOf),
    approvers: document.approvers.map(idOf),
    people: insidersOf(document),
    createdBy: document.createdBy.id,
    createdAt: document.createdAt.toISOString(),
    modifiedAt: document.modifiedAt.toISOString(),
  }
  const key = docKeyOf(document)
  if (key !== null) Object.assign(whole, { docKey: key, docNumber })
  if (lastModifiedBy !== null) whole.lastModifiedBy = lastModifiedBy.id
  if (publishedAt !== null) whole.publishedAt = publishedAt.toISOString()
  return whole
}

function idOf({ id }: { readonly id: string }): string {
  return id
}

/** The payload of an event, or undefined where the event is to be a reference. */
export function payloadOf(document: Document): SearchDocument | undefined {
  const whole = searchDocument(document)
  // A character is at least a byte: most large ones need no count.
  if (document.content.length > payloadBytesMax) return undefined
  return Buffer.byteLength(JSON.stringify(whole)) > payloadBytesMax ? undefined : whole
}
