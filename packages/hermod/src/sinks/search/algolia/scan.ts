/** Pages through an index with Algolia's own cursor. */
import type { Call, ScannedPage, ScanPage } from '../engine.ts'
import type { AlgoliaApi } from './api.ts'
import { liveKey, versionOf } from './document.ts'

const pageMax = 1_000

export async function scanIn(
  api: AlgoliaApi,
  indexName: string,
  { after, limit = pageMax }: ScanPage,
  call: Call,
): Promise<ScannedPage> {
  const first = {
    query: '',
    facetFilters: [`keys:${liveKey}`],
    attributesToRetrieve: ['version', 'hash'],
    hitsPerPage: Math.min(limit, pageMax),
  }
  const { hits, cursor } = await api.browse(indexName, after === undefined ? first : { cursor: after }, call)
  const documents = hits.map((hit) => ({ id: hit.objectID, version: versionOf(hit), hash: hit.hash as string }))
  return { documents, ...(cursor !== undefined && { next: cursor }) }
}
