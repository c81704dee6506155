/** Documents as the API answers with them; times in UTC with milliseconds. */
import { type Document, docKeyOf } from './document.ts'

export function documentView(document: Document) {
  const { contentHash: _hash, authors: _authors, approvals, createdAt, modifiedAt, publishedAt, ...rest } = document
  return {
    ...rest,
    docKey: docKeyOf(document),
    approvals: approvals.map(({ decidedAt, ...approval }) => ({
      ...approval,
      decidedAt: decidedAt.toISOString(),
    })),
    createdAt: createdAt.toISOString(),
    modifiedAt: modifiedAt.toISOString(),
    publishedAt: publishedAt?.toISOString() ?? null,
  }
}
