/**
 * Which drafts a search may look at: those of the caller, as the database knows them now. The index may be behind, so what it
 * still gives to somebody who lost access is left out of everything: hits, totals, facets and corrections.
 */
import type { Filters } from 'hermod/sinks/search'
import { draftsSeenBy } from '../documents/queries.ts'
import type { Platform } from '../platform.ts'

const pageMax = 1_000

/** The filters of a search in drafts: what was asked, and no draft of others. */
export async function ownDrafts(
  platform: Platform,
  personId: string | null,
  asked: Filters,
  signal: AbortSignal,
): Promise<Filters> {
  const people = { anyOf: personId === null ? [] : [personId] }
  const lost = await lostFiles(platform, personId, signal)
  if (lost.size === 0) return { ...asked, people }
  const files = asked.providerFileId as { readonly anyOf: readonly string[] } | undefined
  const providerFileId =
    files === undefined ? { noneOf: [...lost] } : { anyOf: files.anyOf.filter((file) => !lost.has(file)) }
  return { ...asked, people, providerFileId }
}

/** Files of drafts that the index has under this person, and the database no longer. */
async function lostFiles(
  { search, pool }: Platform,
  personId: string | null,
  signal: AbortSignal,
): Promise<Set<string>> {
  const lost = new Set<string>()
  if (personId === null) return lost
  for (let offset = 0; ; offset += pageMax) {
    const { hits } = await search.search('drafts', { filters: { people: personId }, limit: pageMax, offset, signal })
    const seen = await draftsSeenBy(
      pool,
      personId,
      hits.map(({ id }) => id),
    )
    for (const { id, document } of hits) if (!seen.has(id)) lost.add(String(document.providerFileId))
    if (hits.length < pageMax) return lost
  }
}
