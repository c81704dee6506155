/**
 * Reading everything, page by page. Sorted by a number made from the id, a page begins where the one
 * before ended whatever is written meanwhile; servers before 1.16 can only count from the start.
 */
import { refuse } from '../../../check-options.ts'
import type { Call, ScannedPage } from '../engine.ts'
import type { MeilisearchApi, MeilisearchDocument } from './api.ts'
import { idOf, versionOf } from './document.ts'
import { hashField, keyField, placeField, versionField } from './schema.ts'

interface Page {
  readonly after?: string
  readonly limit?: number
  /** Of the server. */
  readonly version: string
}

export async function scanIn(
  api: MeilisearchApi,
  uid: string,
  { after, limit = 1_000, version }: Page,
  call: Call,
): Promise<ScannedPage> {
  if (after !== undefined && !/^\d{1,16}$/.test(after)) {
    refuse('scan', [{ field: 'after', says: 'is not where a page of this engine ended' }])
  }
  const sorted = canSort(version)
  const begin = after === undefined ? undefined : Number(after)
  const from = sorted ? sortedFrom(begin) : { offset: begin ?? 0 }
  const fields = [keyField, versionField, hashField, placeField]
  const found = await api.documents(uid, { ...from, limit: limit + 1, fields }, call)
  const documents = found.slice(0, limit)
  const next = sorted ? documents.at(-1)?.[placeField] : (begin ?? 0) + limit
  return {
    documents: documents.map(scanned),
    ...(found.length > limit && next !== undefined && { next: String(next) }),
  }
}

const sortedFrom = (begin: number | undefined) => ({
  sort: [`${placeField}:asc`],
  ...(begin !== undefined && { filter: `${placeField} > ${begin}` }),
})

function scanned(document: MeilisearchDocument) {
  return { id: idOf(document), version: versionOf(document), hash: String(document[hashField]) }
}

function canSort(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 1 || (major === 1 && minor >= 16)
}
