/**
 * Pages through everything by a number made of the id, which no write changes: each document is seen
 * once, however many are written meanwhile.
 */
import { HermodError } from '../../../errors.ts'
import type { Call, ScannedDocument, ScannedPage, ScanPage } from '../engine.ts'
import type { StoredFields, TypesenseApi } from './api.ts'
import { decodeId, scanKey, versionOf } from './document.ts'
import { own } from './schema.ts'

const hitsMax = 250
const limitMax = 5_000

/** The last number seen, and the ids seen that have it: two ids may share a number. */
interface Cursor {
  readonly at: string
  readonly seen: readonly string[]
}

export async function scanIn(
  api: TypesenseApi,
  collection: string,
  { after, limit = 1_000 }: ScanPage,
  call: Call,
): Promise<ScannedPage> {
  const cursor = after === undefined ? undefined : readCursor(after)
  const wanted = Math.min(Math.max(1, limit), limitMax) + (cursor?.seen.length ?? 0)
  const from = cursor === undefined ? {} : { filter_by: `${own.scan}:>=${cursor.at}` }
  const searches = []
  for (let offset = 0; offset < wanted; offset += hitsMax) {
    searches.push({
      collection,
      q: '*',
      sort_by: `${own.scan}:asc`,
      ...from,
      offset,
      limit: Math.min(hitsMax, wanted - offset),
      include_fields: `id,${own.version},${own.hash}`,
    })
  }
  const results = await api.multiSearch(searches, call)
  const found = results.flatMap(({ hits }) => hits.map(({ document }) => document))
  const fresh = found.filter(({ id }) => !cursor?.seen.includes(String(id)))
  const more = (results[0]?.found ?? 0) > wanted
  return {
    documents: fresh.map(scanned),
    ...(more && { next: JSON.stringify(cursorOf(found)) }),
  }
}

function readCursor(after: string): Cursor {
  try {
    const { at, seen } = JSON.parse(after) as Cursor
    if (/^\d+$/.test(at) && Array.isArray(seen)) return { at, seen }
  } catch {
    // Said below.
  }
  throw new HermodError('HMD_OPTION_INVALID', 'scan: after must be `next` of the page before', {
    field: 'after',
  })
}

function scanned(stored: StoredFields): ScannedDocument {
  const hash = String(stored[own.hash] ?? '')
  return { id: decodeId(String(stored.id)), version: versionOf(stored), hash }
}

function cursorOf(found: readonly StoredFields[]): Cursor {
  const at = String(scanKey(String(found.at(-1)?.id)))
  const seen = found.map(({ id }) => String(id)).filter((id) => String(scanKey(id)) === at)
  return { at, seen }
}
