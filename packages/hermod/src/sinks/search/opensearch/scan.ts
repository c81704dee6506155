/** Pages through a generation in key order. The cursor is the last id; content is hashed as it is stored. */
import { HttpError } from '../../http.ts'
import type { ScannedPage, ScanPage } from '../engine.ts'
import { type ApiCall, type Found, isOf, type OpenSearchApi } from './api.ts'
import { storedOf } from './document.ts'
import { reserved } from './schema.ts'

export async function scanIn(
  api: OpenSearchApi,
  alias: string,
  { after, limit = 1_000 }: ScanPage,
  call: ApiCall,
): Promise<ScannedPage> {
  if (after === undefined) await showWrites(api, alias, call)
  const { hits, size } = await page(api, alias, { after, size: limit }, call)
  const documents = hits.hits.map(({ _id, _source }) => {
    const { id, version, hash } = storedOf(_id, _source)
    return { id, version, hash }
  })
  const last = documents.at(-1)
  return { documents, ...(documents.length === size && last && { next: last.id }) }
}

/** Large documents make smaller pages. */
async function page(
  api: OpenSearchApi,
  alias: string,
  { after, size }: { readonly after: string | undefined; readonly size: number },
  call: ApiCall,
): Promise<Found & { readonly size: number }> {
  const body = {
    size,
    track_total_hits: false,
    sort: [{ [reserved.id]: 'asc' }],
    ...(after !== undefined && { search_after: [after] }),
  }
  try {
    return { ...(await api.search(alias, body, call)), size }
  } catch (error) {
    const large = error instanceof HttpError && error.code === 'HTTP_ANSWER_TOO_LARGE'
    if (!large || size === 1) throw error
    return page(api, alias, { after, size: Math.ceil(size / 2) }, call)
  }
}

/** A search finds what was written from now on. A key that may not ask for it waits for the next second. */
export async function showWrites(api: OpenSearchApi, alias: string, call: ApiCall): Promise<void> {
  await api.refresh(alias, call).catch((error) => {
    if (!isOf(error, 'security_exception')) throw error
  })
}
