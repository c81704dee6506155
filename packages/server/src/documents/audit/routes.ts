/** What happened to documents, who did it, and whether the search indexes know. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Actor } from '../../actor.ts'
import { actorOf } from '../../http/actor-of.ts'
import { nextLink, pageOf, placeOf } from '../../http/paging.ts'
import { answers } from '../../http/responses.ts'
import type { Platform } from '../../platform.ts'
import { notFound } from '../../problems.ts'
import { idParams } from '../schemas.ts'
import { syncOf } from '../sync.ts'
import { findEntry, type LogEntry, type LogFilter, listLog, placeOfEntry } from './queries.ts'
import * as shape from './schemas.ts'
import { entryView, syncView } from './view.ts'

type Paged = { readonly limit: number; readonly cursor?: string }

export function auditRoutes(app: FastifyInstance, platform: Platform): void {
  const tags = ['audit']
  const read = { permission: 'document:read' as const }
  const history = {
    tags,
    operationId: 'getHistory',
    params: idParams,
    querystring: shape.historyQuery,
    summary: 'What happened to a document or draft, also after it is gone',
    response: answers({ 200: shape.entryList }, 404),
  }
  app.get('/api/v2/documents/:id/history', { config: read, schema: history }, (request, reply) =>
    answerHistory(platform, request, reply),
  )
  const sync = {
    tags,
    operationId: 'getSync',
    params: idParams,
    querystring: shape.syncQuery,
    summary: 'Is it searchable yet, and if not, why',
    response: answers({ 200: shape.syncState }, 404),
  }
  app.get('/api/v2/documents/:id/sync', { config: read, schema: sync }, (request, reply) =>
    answerSync(platform, request, reply),
  )
  const audit = {
    tags,
    operationId: 'getAudit',
    querystring: shape.auditQuery,
    summary: 'The audit trail of all documents',
    response: answers({ 200: shape.entryList }),
  }
  const auditing = { permission: 'audit:read' as const }
  app.get('/api/v2/audit', { config: auditing, schema: audit }, (request, reply) => {
    const { limit, cursor, ...filter } = request.query as Paged & LogFilter
    return answerEntries(platform, request, reply, filter, { limit, ...(cursor && { cursor }) })
  })
}

/** If the reader may see no entry of a document, it does not exist for them. */
async function answerHistory(platform: Platform, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { id: document } = request.params as { id: string }
  const { personId: reader } = actorOf(request)
  const seen = await findEntry(platform.pool, { reader, document })
  if (seen === undefined) throw notFound('document with this id')
  const filter = { document, visible: true as const }
  return answerEntries(platform, request, reply, filter, request.query as Paged)
}

async function answerEntries(
  { pool, config }: Platform,
  request: FastifyRequest,
  reply: FastifyReply,
  filter: LogFilter,
  { limit, cursor }: Paged,
): Promise<FastifyReply> {
  const actor = actorOf(request)
  const bound = { secret: config.secret, filter: ['audit', filter] }
  const after = placeOf(cursor, bound)
  const rows = await listLog(pool, { reader: actor.personId, filter, after, limit: limit + 1 })
  const page = pageOf(rows, limit, placeOfEntry, bound)
  const items = page.items.map((entry) => entryView(entry, mayAudit(actor)))
  return reply.headers(nextLink(request.url, page.nextCursor)).send({ ...page, items })
}

function mayAudit({ permissions }: Actor): boolean {
  return permissions.has('audit:read')
}

async function answerSync(platform: Platform, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { id: document } = request.params as { id: string }
  const { log } = request.query as { log?: string }
  const { personId: reader, permissions } = actorOf(request)
  const details = permissions.has('outbox:read')
  const entry: LogEntry | undefined = await findEntry(platform.pool, { reader, document, log })
  if (entry === undefined) throw notFound('such change of a document with this id')
  return reply.send(syncView(entry, await syncOf(platform, entry, { details })))
}
