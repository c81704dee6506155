/** Pages through an index with Algolia's own cursor. */
import type { Call, ScannedPage, ScanPage } from '../engine.ts'
import type { AlgoliaApi } from './api.ts'
import { liveKey, storedOf } from './document.ts'
import type { AlgoliaGeneration } from './state.ts'

const pageMax = 1_000
/** Of whole records, 100 kB each at most: a cursor keeps the size of its first page. */
const wholePageMax = 500

export async function scanIn(
  api: AlgoliaApi,
  { indexName, definition }: AlgoliaGeneration,
  { after, limit = pageMax, fast = false }: ScanPage,
  call: Call,
): Promise<ScannedPage> {
  const first = {
    query: '',
    facetFilters: [`keys:${liveKey}`],
    ...(fast && { attributesToRetrieve: ['version', 'hash'] }),
    hitsPerPage: Math.min(limit, fast ? pageMax : wholePageMax),
  }
  const { hits, cursor } = await api.browse(indexName, after === undefined ? first : { cursor: after }, call)
  const documents = hits.map((hit) => {
    const { id, version, hash } = storedOf(definition, hit, fast)
    return { id, version, hash }
  })
  return { documents, ...(cursor !== undefined && { next: cursor }) }
}
