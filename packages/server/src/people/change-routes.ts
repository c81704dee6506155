/** Routes that change one person: create, rename, give a role, link, unlink, primary, import. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import type { Actor } from '../actor.ts'
import { actorOf } from '../http/actor-of.ts'
import { type Answer, runCommand } from '../http/command.ts'
import { answers, nothing } from '../http/responses.ts'
import type { Platform, Tx } from '../platform.ts'
import { notFound } from '../problems.ts'
import { assertRecent } from '../recent-sign-in.ts'
import { etagOf, versionSeen } from '../version-tags.ts'
import * as commands from './commands.ts'
import { importUsers } from './import-users.ts'
import { findPerson } from './queries.ts'
import * as shapes from './schemas.ts'
import { personFor } from './view.ts'

type Params = Static<typeof shapes.identityParams>

const config = { permission: 'person:admin' as const }
const tags = ['people']

export function changeRoutes(app: FastifyInstance, platform: Platform): void {
  creating(app, platform)
  changing(app, platform)
  linking(app, platform)
  unlinking(app, platform)
  choosing(app, platform)
  importing(app, platform)
}

/** The person as it is after the change, with its new version. */
async function changed(tx: Tx, actor: Actor, id: string, status = 200): Promise<Answer> {
  const person = await findPerson(tx, id)
  if (person === undefined) throw notFound('person')
  const headers = { etag: etagOf(person.version) }
  return { status, headers, body: await personFor(tx, actor, person) }
}

function creating(app: FastifyInstance, platform: Platform): void {
  const schema = {
    tags,
    operationId: 'createPerson',
    summary: 'Add a person before their first log-in',
    body: shapes.newPersonBody,
    response: answers({ 201: shapes.person }, 409, 413, 415, 422),
  }
  app.post('/api/v2/people', { config, schema }, (request, reply) =>
    runCommand(platform, request, reply, async (tx, actor) => {
      const wanted = request.body as Static<typeof shapes.newPersonBody>
      const id = await commands.createPerson(platform, tx, actor, wanted)
      const { headers, ...answer } = await changed(tx, actor, id, 201)
      return { ...answer, headers: { ...headers, location: `/api/v2/people/${id}` } }
    }),
  )
}

function changing(app: FastifyInstance, platform: Platform): void {
  const schema = {
    tags,
    operationId: 'updatePerson',
    summary: 'Change the name or the role of a person',
    params: shapes.idParams,
    body: shapes.personPatch,
    response: answers({ 200: shapes.person }, 404, 409, 412, 413, 415, 422, 428),
  }
  app.patch('/api/v2/people/:id', { config, schema }, (request, reply) => {
    const { id: personId } = request.params as Params
    const seen = versionSeen(request.headers['if-match'])
    const change = request.body as Static<typeof shapes.personPatch>
    return runCommand(platform, request, reply, async (tx, actor) => {
      await commands.updatePerson(platform, tx, actor, { personId, seen, change })
      return changed(tx, actor, personId)
    })
  })
}

function linking(app: FastifyInstance, platform: Platform): void {
  const schema = {
    tags,
    operationId: 'linkIdentity',
    summary: 'Give a person one more way to log in',
    params: shapes.idParams,
    body: shapes.newIdentityBody,
    response: answers({ 201: shapes.person }, 404, 409, 413, 415, 422),
  }
  app.post('/api/v2/people/:id/identities', { config, schema }, (request, reply) => {
    const { id } = request.params as Params
    const wanted = request.body as Static<typeof shapes.newIdentityBody>
    return runCommand(platform, request, reply, async (tx, actor) => {
      await commands.linkIdentity(platform, tx, actor, id, wanted)
      return changed(tx, actor, id, 201)
    })
  })
}

function unlinking(app: FastifyInstance, platform: Platform): void {
  const schema = {
    tags,
    operationId: 'unlinkIdentity',
    summary: 'Take a way to log in from a person',
    params: shapes.identityParams,
    response: answers({ 204: nothing('It is unlinked') }, 404, 409, 412, 428),
  }
  app.delete('/api/v2/people/:id/identities/:identityId', { config, schema }, (request, reply) => {
    const { id: personId, identityId } = request.params as Params
    const seen = versionSeen(request.headers['if-match'])
    return runCommand(platform, request, reply, async (tx, actor) => {
      await commands.unlinkIdentity(platform, tx, actor, { personId, identityId, seen })
      return { status: 204 }
    })
  })
}

function choosing(app: FastifyInstance, platform: Platform): void {
  const schema = {
    tags,
    operationId: 'setPrimaryIdentity',
    summary: 'Make an identity the primary one',
    params: shapes.identityParams,
    response: answers({ 200: shapes.person }, 404, 409),
  }
  const url = '/api/v2/people/:id/identities/:identityId/primary'
  app.post(url, { config, schema }, (request, reply) => {
    const { id: personId, identityId } = request.params as Params
    return runCommand(platform, request, reply, async (tx, actor) => {
      await commands.setPrimary(platform, tx, actor, { personId, identityId })
      return changed(tx, actor, personId)
    })
  })
}

function importing(app: FastifyInstance, platform: Platform): void {
  const schema = {
    tags,
    operationId: 'importPeople',
    summary: 'Import a legacy table of users',
    body: shapes.importBody,
    response: answers({ 200: shapes.imported }, 413, 415, 422),
  }
  app.post('/api/v2/people/import', { config, schema }, (request, reply) => runImport(platform, request, reply))
}

/** In transactions of its own; it may be repeated, so it needs no Idempotency-Key. */
async function runImport(platform: Platform, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const wanted = request.body as Static<typeof shapes.importBody>
  const actor = actorOf(request)
  assertRecent(actor, platform.clock())
  return reply.send(await importUsers(platform, actor, wanted))
}
