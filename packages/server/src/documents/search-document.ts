/**
 * A document as search engines get it, and what each of its fields is for. It is the payload of
 * every event; the indexes `documents` and `drafts` share one declaration.
 */
import type { IndexDefinition } from 'hermod/sinks/search'
import { type Document, docKeyOf, insidersOf } from './document.ts'

/** Events above this carry no payload: the row is read when they are delivered. */
export const payloadBytesMax = 200_000

export const searchDefinition = {
  language: 'english',
  fields: {
    title: { kind: 'text', weight: 4 },
    docKey: { kind: 'identifier' },
    tags: { kind: 'keyword', facet: true, searchable: 3 },
    summary: { kind: 'text', weight: 2 },
    ownerNames: { kind: 'text', weight: 2 },
    content: { kind: 'text', weight: 1, displayed: false },
    status: { kind: 'keyword', facet: true },
    docType: { kind: 'keyword', facet: true },
    product: { kind: 'keyword', facet: true },
    workspaceProvider: { kind: 'keyword', facet: true },
    providerFileId: { kind: 'keyword' },
    owners: { kind: 'keyword', facet: true },
    contributors: { kind: 'keyword' },
    approvers: { kind: 'keyword' },
    // Who may find a draft.
    people: { kind: 'keyword', displayed: false },
    createdBy: { kind: 'keyword' },
    lastModifiedBy: { kind: 'keyword' },
    version: { kind: 'keyword' },
    docNumber: { kind: 'number' },
    createdAt: { kind: 'date' },
    modifiedAt: { kind: 'date' },
    publishedAt: { kind: 'date' },
    customFields: { kind: 'stored' },
  },
} as const satisfies IndexDefinition

export type SearchField = keyof typeof searchDefinition.fields

/** Fields without a value are left out. */
export type SearchDocument = Readonly<Partial<Record<SearchField, unknown>>> & {
  readonly version: string
}

export function searchDocument(document: Document): SearchDocument {
  const { title, summary, content, status, docType, product, tags, customFields } = document
  const { workspaceProvider, providerFileId, version, docNumber, publishedAt } = document
  const ids = (people: readonly { id: string }[]) => people.map(({ id }) => id)
  const key = docKeyOf(document)
  return {
    ...{ title, summary, content, status, docType, product, tags, customFields },
    ...{ workspaceProvider, providerFileId, version },
    ...(key !== null && { docKey: key, docNumber }),
    owners: ids(document.owners),
    ownerNames: document.owners.map(({ displayName }) => displayName),
    contributors: ids(document.contributors),
    approvers: ids(document.approvers),
    people: insidersOf(document),
    createdBy: document.createdBy.id,
    ...(document.lastModifiedBy !== null && { lastModifiedBy: document.lastModifiedBy.id }),
    createdAt: document.createdAt.toISOString(),
    modifiedAt: document.modifiedAt.toISOString(),
    ...(publishedAt !== null && { publishedAt: publishedAt.toISOString() }),
  }
}

/** The payload of an event, or undefined where the event is to be a reference. */
export function payloadOf(document: Document): SearchDocument | undefined {
  const whole = searchDocument(document)
  // A character is at least a byte: most large ones need no count.
  if (document.content.length > payloadBytesMax) return undefined
  return Buffer.byteLength(JSON.stringify(whole)) > payloadBytesMax ? undefined : whole
}
