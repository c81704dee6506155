/** What each field of a document is for in search. The indexes `documents` and `drafts` share it. */
import type { IndexDefinition } from 'hermod/sinks/search'

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
