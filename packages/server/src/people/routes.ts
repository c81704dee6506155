/** Routes of the room people: reading for everybody, changing for admins. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import type { Actor } from '../actor.ts'
import { actorOf } from '../http/actor-of.ts'
import { nextLink, pageOf, placeOf } from '../http/paging.ts'
import { answers } from '../http/responses.ts'
import type { Asked, Platform } from '../platform.ts'
import { notFound } from '../problems.ts'
import { etagOf } from '../version-tags.ts'
import { changeRoutes } from './change-routes.ts'
import { mergeRoutes } from './merge-routes.ts'
import * as queries from './queries.ts'
import * as shapes from './schemas.ts'
import { personFor } from './view.ts'

type Params = Static<typeof shapes.idParams>

export function peopleRoutes(app: FastifyInstance, platform: Platform): void {
  readRoutes(app, platform)
  changeRoutes(app, platform)
  mergeRoutes(app, platform)
}

function readRoutes(app: FastifyInstance, platform: Platform): void {
  const tags = ['people']
  const reading = { permission: 'person:read' as const }
  const aboutMe = {
    tags,
    operationId: 'getMe',
    summary: 'Who you are, as whom, and what you may do',
    response: answers({ 200: shapes.me }),
  }
  app.get('/api/v2/me', { config: reading, schema: aboutMe }, async (request, reply) =>
    reply.send(await myself(platform.pool, actorOf(request))),
  )
  const listing = {
    tags,
    operationId: 'listPeople',
    summary: 'People by name or e-mail address',
    querystring: shapes.listQuery,
    response: answers({ 200: shapes.people }),
  }
  app.get('/api/v2/people', { config: reading, schema: listing }, (request, reply) => list(platform, request, reply))
  const getting = {
    tags,
    operationId: 'getPerson',
    summary: 'One person',
    params: shapes.idParams,
    response: answers({ 200: shapes.person }, 404),
  }
  app.get('/api/v2/people/:id', { config: reading, schema: getting }, (request, reply) =>
    show(platform, request, reply),
  )
  const auditing = {
    tags,
    operationId: 'getPersonAudit',
    summary: 'What was decided about a person',
    params: shapes.idParams,
    querystring: shapes.auditQuery,
    response: answers({ 200: shapes.audit }, 404),
  }
  const config = { permission: 'person:admin' as const }
  app.get('/api/v2/people/:id/audit', { config, schema: auditing }, (request, reply) => audit(platform, request, reply))
}

async function myself(db: Asked, actor: Actor): Promise<object> {
  const found = await queries.findPerson(db, actor.personId ?? '0')
  if (found === undefined) throw notFound('person')
  return {
    ...found,
    role: actor.role,
    identity: actor.identity,
    permissions: [...actor.permissions].sort(),
    signedInAt: actor.signedInAt ?? null,
    identities: await queries.identitiesOf(db, found.id),
  }
}

async function list(platform: Platform, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { limit, cursor, q } = request.query as Static<typeof shapes.listQuery>
  const bound = { secret: platform.config.secret, filter: ['people', q ?? null] }
  const after = placeOf(cursor, bound)
  const { personId, permissions } = actorOf(request)
  const admin = permissions.has('person:admin')
  const asker = { personId, seesAddresses: admin }
  const rows = await queries.listPeople(platform.pool, { q, asker, after, limit: limit + 1 })
  const page = pageOf(rows, limit, ({ sort, id }) => [sort, id], bound)
  const items = page.items.map(({ id, displayName, role }) => ({
    id,
    displayName,
    ...(admin && { role }),
  }))
  return reply.headers(nextLink(request.url, page.nextCursor)).send({ ...page, items })
}

async function show(platform: Platform, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { id } = request.params as Params
  const found = await queries.findPerson(platform.pool, id)
  if (found === undefined) throw notFound('person')
  reply.header('etag', etagOf(found.version))
  if (found.id !== id) reply.header('content-location', `/api/v2/people/${found.id}`)
  if (request.headers['if-none-match'] === etagOf(found.version)) return reply.code(304).send()
  return reply.send(await personFor(platform.pool, actorOf(request), found))
}

async function audit(platform: Platform, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { id: personId } = request.params as Params
  const { limit, cursor } = request.query as Static<typeof shapes.auditQuery>
  const bound = { secret: platform.config.secret, filter: ['person audit', personId] }
  const [before = null] = placeOf(cursor, bound) ?? []
  if (!(await queries.personExists(platform.pool, personId))) throw notFound('person')
  const rows = await queries.auditOf(platform.pool, { personId, before, limit: limit + 1 })
  const page = pageOf(rows, limit, ({ id }) => [id], bound)
  return reply.headers(nextLink(request.url, page.nextCursor)).send(page)
}
