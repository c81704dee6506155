/**
 * Reading everything, page by page. Sorted by a number made from the id, a page begins where the one
 * before ended whatever is written meanwhile; servers before 1.16 can only count from the start.
 */
import { refuse } from '../../../check-options.ts'
import type { Call, ScannedPage, ScanPage, StoredDocument } from '../engine.ts'
import { fittingPage } from '../large-pages.ts'
import type { MeilisearchApi } from './api.ts'
import { storedOf } from './document.ts'
import type { MeilisearchGeneration } from './registry.ts'
import { hashField, keyField, placeField, versionField } from './schema.ts'

interface Page extends ScanPage {
  /** Of the server. */
  readonly version: string
}

export async function scanIn(
  api: MeilisearchApi,
  { uid, definition }: MeilisearchGeneration,
  { after, limit: wanted = 1_000, fast = false, version }: Page,
  call: Call,
): Promise<ScannedPage> {
  if (after !== undefined && !/^\d{1,16}$/.test(after)) {
    refuse('scan', [{ field: 'after', says: 'is not where a page of this engine ended' }])
  }
  const sorted = canSort(version)
  const begin = after === undefined ? undefined : Number(after)
  const from = sorted ? sortedFrom(begin) : { offset: begin ?? 0 }
  const fields = fast ? { fields: [keyField, versionField, hashField, placeField] } : {}
  const { answer: found, size: limit } = await fittingPage(wanted, (size) =>
    api.documents(uid, { ...from, ...fields, limit: size + 1 }, call),
  )
  const documents = found.slice(0, limit)
  const next = sorted ? documents.at(-1)?.[placeField] : (begin ?? 0) + limit
  return {
    documents: documents.map((document) => scanned(storedOf(definition, document, fast))),
    ...(found.length > limit && next !== undefined && { next: String(next) }),
  }
}

const sortedFrom = (begin: number | undefined) => ({
  sort: [`${placeField}:asc`],
  ...(begin !== undefined && { filter: `${placeField} > ${begin}` }),
})

const scanned = ({ id, version, hash }: StoredDocument) => ({ id, version, hash })

function canSort(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 1 || (major === 1 && minor >= 16)
}
