/** Routes of the room access: a person's own API tokens, and everybody's for admins. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { actorOf } from '../http/actor-of.ts'
import { runCommand } from '../http/command.ts'
import { nextLink, pageOf, placeOf } from '../http/paging.ts'
import { answers, nothing } from '../http/responses.ts'
import type { Platform } from '../platform.ts'
import { createToken, revokeToken } from './commands.ts'
import { listTokens } from './queries.ts'
import { expiryOf } from './rules.ts'
import { adminListQuery, idParams, listQuery, newToken, newTokenBody, tokens } from './schemas.ts'

type Query = Static<typeof adminListQuery>
type Params = Static<typeof idParams>

export function tokenRoutes(app: FastifyInstance, platform: Platform): void {
  ownTokens(app, platform)
  everybodysTokens(app, platform)
}

function ownTokens(app: FastifyInstance, platform: Platform): void {
  const config = { permission: 'token:own' as const }
  const tags = ['tokens']
  const creating = {
    tags,
    operationId: 'createToken',
    summary: 'Make an API token; its secret is shown once',
    body: newTokenBody,
    response: answers({ 201: newToken }, 404, 409, 413, 415, 422),
  }
  app.post('/api/v2/tokens', { config, schema: creating }, (request, reply) => create(platform, request, reply))
  const listing = {
    tags,
    operationId: 'listTokens',
    summary: 'Your API tokens, revoked ones included',
    querystring: listQuery,
    response: answers({ 200: tokens }),
  }
  app.get('/api/v2/tokens', { config, schema: listing }, (request, reply) =>
    list(platform, request, reply, actorOf(request).personId),
  )
  const revoking = {
    tags,
    operationId: 'revokeToken',
    summary: 'Revoke one of your API tokens',
    params: idParams,
    response: answers({ 204: nothing('It is revoked, or was already') }, 404),
  }
  app.delete('/api/v2/tokens/:id', { config, schema: revoking }, (request, reply) =>
    revoke(platform, request, reply, actorOf(request).personId),
  )
}

function everybodysTokens(app: FastifyInstance, platform: Platform): void {
  const config = { permission: 'token:admin' as const }
  const tags = ['tokens']
  const listing = {
    tags,
    operationId: 'listAllTokens',
    summary: 'Everybody’s API tokens',
    querystring: adminListQuery,
    response: answers({ 200: tokens }),
  }
  app.get('/api/v2/admin/tokens', { config, schema: listing }, (request, reply) =>
    list(platform, request, reply, (request.query as Query).person ?? null),
  )
  const revoking = {
    tags,
    operationId: 'revokeAnyToken',
    summary: 'Revoke anybody’s API token',
    params: idParams,
    response: answers({ 204: nothing('It is revoked, or was already') }, 404),
  }
  app.delete('/api/v2/admin/tokens/:id', { config, schema: revoking }, (request, reply) =>
    revoke(platform, request, reply, null),
  )
}

function create(platform: Platform, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { name, scopes, expiresAt } = request.body as Static<typeof newTokenBody>
  const wanted = { name, scopes, expiresAt: expiryOf(expiresAt, platform.clock()) }
  return runCommand(platform, request, reply, async (tx, actor) => {
    const { token, secret } = await createToken(platform, tx, actor, wanted)
    return { status: 201, body: { ...token, secret: null }, unstored: { secret } }
  })
}

async function list(
  platform: Platform,
  request: FastifyRequest,
  reply: FastifyReply,
  person: string | null,
): Promise<FastifyReply> {
  const { limit, cursor } = request.query as Query
  const bound = { secret: platform.config.secret, filter: ['tokens', person] }
  const [before = null] = placeOf(cursor, bound) ?? []
  const rows = await listTokens(platform.pool, { person, before, limit: limit + 1 })
  const page = pageOf(rows, limit, ({ id }) => [id], bound)
  return reply.headers(nextLink(request.url, page.nextCursor)).send(page)
}

function revoke(
  platform: Platform,
  request: FastifyRequest,
  reply: FastifyReply,
  owner: string | null,
): Promise<FastifyReply> {
  const { id } = request.params as Params
  return runCommand(platform, request, reply, async (tx, actor) => {
    await revokeToken(tx, actor, id, owner)
    return { status: 204 }
  })
}
