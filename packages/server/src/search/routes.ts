/**
 * Searching. Drafts are found only by those who may see them: the engine filters by person, and
 * its hits are checked against the database, because an index may be out of date.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { HermodError } from 'hermod'
import type { SearchResult } from 'hermod/sinks/search'
import type { Actor } from '../actor.ts'
import { draftsSeenBy } from '../documents/queries.ts'
import type { IndexName } from '../events.ts'
import { actorOf } from '../http/actor-of.ts'
import { answers } from '../http/responses.ts'
import type { Platform } from '../platform.ts'
import { Problem } from '../problems.ts'
import { ownDrafts } from './own-drafts.ts'
import { facetsOf, filtersOf, highlighted, sortOf } from './request.ts'
import { found, searchQuery } from './schemas.ts'

interface Asked {
  readonly q: string
  readonly index: IndexName
  readonly filter?: readonly string[]
  readonly facets?: readonly string[]
  readonly sort?: readonly string[]
  readonly limit: number
  readonly offset: number
}

export function searchRoutes(app: FastifyInstance, platform: Platform): void {
  const config = { permission: 'search:read' as const }
  const schema = {
    tags: ['search'],
    operationId: 'search',
    summary: 'Search documents, or your drafts',
    querystring: searchQuery,
    response: answers({ 200: found }),
  }
  app.get('/api/v2/search', { config, schema }, (request, reply) => answerSearch(platform, request, reply))
}

async function answerSearch(platform: Platform, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const asked = request.query as Asked
  const actor = actorOf(request)
  const result = await ask(platform, actor, asked)
  const visible = await visibleHits(platform, actor, asked.index, result)
  const hits = visible.map(({ id, version, score, document, highlights }) => ({
    id,
    position: String(version),
    score,
    document,
    highlights,
  }))
  const { index, limit, offset } = asked
  const { total, totalExact, facets, facetsExact, corrected } = result
  return reply.send({
    index,
    hits,
    total,
    totalExact,
    facets,
    facetsExact,
    corrected,
    nextOffset: offset + limit < total ? offset + limit : null,
  })
}

async function ask(
  platform: Platform,
  { personId }: Actor,
  { q, index, filter = [], facets = [], sort = [], limit, offset }: Asked,
): Promise<SearchResult> {
  const signal = AbortSignal.timeout(5_000)
  const request = {
    query: q,
    filters: filtersOf(filter),
    facets: facetsOf(facets),
    sort: sortOf(sort),
    highlights: highlighted,
    limit,
    offset,
    signal,
  }
  try {
    if (index === 'documents') return await platform.search.search(index, request)
    const filters = await ownDrafts(platform, personId, request.filters, signal)
    return await platform.search.search(index, { ...request, filters })
  } catch (error) {
    throw asProblem(error)
  }
}

/** An engine error is not the caller's fault: the request was checked before. */
function asProblem(error: unknown): Problem {
  const refused = error instanceof HermodError && error.code.startsWith('HMD_OPTION')
  if (refused) return new Problem('HMD_REQUEST_INVALID', error.message, { cause: error })
  return new Problem('HMD_UNAVAILABLE', 'Search does not answer; try again shortly.', {
    headers: { 'retry-after': '5' },
    cause: error,
  })
}

/** An index may be behind: a draft that somebody may no longer see is not shown. */
async function visibleHits(
  { pool }: Platform,
  { personId }: Actor,
  index: IndexName,
  { hits }: SearchResult,
): Promise<SearchResult['hits']> {
  if (index === 'documents') return hits
  const ids = hits.map(({ id }) => id)
  const seen = await draftsSeenBy(pool, personId, ids)
  return hits.filter(({ id }) => seen.has(id))
}
