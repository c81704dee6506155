/**
 * Pages through everything by a number made of the id, which no write changes: each document is seen
 * once, however many are written meanwhile.
 */
import { HermodError } from '../../../errors.ts'
import type { Call, ScannedPage, ScanPage, StoredDocument } from '../engine.ts'
import { fittingPage } from '../large-pages.ts'
import type { StoredFields, TypesenseApi } from './api.ts'
import { scanKey, storedDocument } from './document.ts'
import type { TypesenseGeneration } from './generations.ts'
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
  { collection, definition }: TypesenseGeneration,
  { after, limit = 1_000, fast = false }: ScanPage,
  call: Call,
): Promise<ScannedPage> {
  const cursor = after === undefined ? undefined : readCursor(after)
  const seen = cursor?.seen.length ?? 0
  const first = Math.min(Math.max(1, limit), limitMax)
  const page = { collection, fast, ...(cursor !== undefined && { filter_by: `${own.scan}:>=${cursor.at}` }) }
  const { answer: results, size } = await fittingPage(first, (rows) =>
    api.multiSearch(searchesFor(page, rows + seen), call),
  )
  const found = results.flatMap(({ hits }) => hits.map(({ document }) => document))
  const fresh = found.filter(({ id }) => !cursor?.seen.includes(String(id)))
  const more = (results[0]?.found ?? 0) > size + seen
  return {
    documents: fresh.map((stored) => scanned(storedDocument(definition, stored, fast))),
    ...(more && { next: JSON.stringify(cursorOf(found)) }),
  }
}

interface Part {
  readonly collection: string
  readonly fast: boolean
  readonly filter_by?: string
}

/** Typesense gives 250 hits of one search. */
function searchesFor({ fast, ...part }: Part, wanted: number) {
  const searches = []
  for (let offset = 0; offset < wanted; offset += hitsMax) {
    searches.push({
      ...part,
      q: '*',
      sort_by: `${own.scan}:asc`,
      offset,
      limit: Math.min(hitsMax, wanted - offset),
      ...(fast && { include_fields: `id,${own.version},${own.hash}` }),
    })
  }
  return searches
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

const scanned = ({ id, version, hash }: StoredDocument) => ({ id, version, hash })

function cursorOf(found: readonly StoredFields[]): Cursor {
  const at = String(scanKey(String(found.at(-1)?.id)))
  const seen = found.map(({ id }) => String(id)).filter((id) => String(scanKey(id)) === at)
  return { at, seen }
}
