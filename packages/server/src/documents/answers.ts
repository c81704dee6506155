/** How the routes of the room answer: one document with its ETag, lists with their cursor. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Actor } from '../actor.ts'
import { actorOf } from '../http/actor-of.ts'
import { type Answer, runCommand } from '../http/command.ts'
import { nextLink, pageOf, placeOf } from '../http/paging.ts'
import type { Platform, Tx } from '../platform.ts'
import { etagOf, versionSeen } from '../version-tags.ts'
import { type Document, isDraft } from './document.ts'
import { type Target, wrongKind } from './open.ts'
import { type DocumentFilter, findDocument, listDocuments, placeOfDocument } from './queries.ts'
import { assertSees } from './rules.ts'
import { documentView } from './view.ts'

export function answerOf(document: Document, status = 200): Answer {
  const kind = isDraft(document) ? 'drafts' : 'documents'
  return {
    status,
    body: documentView(document),
    headers: {
      etag: etagOf(document.version),
      ...(status === 201 && { location: `/api/v2/${kind}/${document.id}` }),
    },
  }
}

export function targetOf(request: FastifyRequest, kind: Target['kind']): Target {
  const { id } = request.params as { id: string }
  return { id, kind, seen: versionSeen(request.headers['if-match']) }
}

/** Runs a command that answers with the document it made or changed. */
export function answerDocument(
  platform: Platform,
  request: FastifyRequest,
  reply: FastifyReply,
  work: (tx: Tx, actor: Actor) => Promise<Document>,
  status = 200,
): Promise<FastifyReply> {
  return runCommand(platform, request, reply, async (tx, actor) => answerOf(await work(tx, actor), status))
}

export async function answerOne(
  { pool }: Platform,
  request: FastifyRequest,
  reply: FastifyReply,
  kind: Target['kind'],
): Promise<FastifyReply> {
  const { id } = request.params as { id: string }
  const document = await findDocument(pool, id)
  assertSees(document, actorOf(request))
  if (isDraft(document) !== (kind === 'draft')) throw wrongKind({ id, kind })
  const { body, headers = {} } = answerOf(document)
  reply.headers(headers)
  const known = String(request.headers['if-none-match'] ?? '').split(/\s*,\s*/)
  const unchanged = known.includes('*') || known.some((tag) => tag.replace(/^W\//, '') === headers.etag)
  return unchanged ? reply.code(304).send() : reply.send(body)
}

export async function answerList(
  { pool, config }: Platform,
  request: FastifyRequest,
  reply: FastifyReply,
  kind: Target['kind'],
): Promise<FastifyReply> {
  const { limit, cursor, ...filter } = request.query as DocumentFilter & {
    readonly limit: number
    readonly cursor?: string
  }
  const { personId } = actorOf(request)
  const draftsOf = kind === 'draft' ? { draftsOf: personId } : {}
  const bound = { secret: config.secret, filter: [kind, draftsOf, filter] }
  const after = placeOf(cursor, bound)
  const rows = await listDocuments(pool, { filter, after, limit: limit + 1, ...draftsOf })
  const page = pageOf(rows, limit, placeOfDocument, bound)
  const items = page.items.map(documentView)
  return reply.headers(nextLink(request.url, page.nextCursor)).send({ ...page, items })
}

/** A body that may be left out. */
export async function bodyMayBeMissing(request: FastifyRequest): Promise<void> {
  request.body ??= {}
}
