/** Drafts: visible to their owners and contributors only. */
import type { FastifyInstance } from 'fastify'
import type { Actor } from '../actor.ts'
import { runCommand } from '../http/command.ts'
import { answers, nothing } from '../http/responses.ts'
import type { Platform, Tx } from '../platform.ts'
import { answerDocument, answerList, answerOne, targetOf } from './answers.ts'
import { type Creation, createDraft, remove } from './commands.ts'
import { type Edit, edit } from './edit.ts'
import * as shape from './schemas.ts'

const tags = ['drafts']
const read = { permission: 'document:read' as const }
const write = { permission: 'document:write' as const }

export function draftRoutes(app: FastifyInstance, platform: Platform): void {
  reads(app, platform)
  const bodyLimit = platform.config.limits.documentBytes
  const creating = {
    tags,
    operationId: 'createDraft',
    summary: 'Begin a draft',
    body: shape.newDraftBody,
    headers: shape.keyHeader,
    response: answers({ 201: shape.wholeDocument }, 409, 413, 415, 422),
  }
  app.post('/api/v2/drafts', { config: write, bodyLimit, schema: creating }, (request, reply) => {
    const body = request.body as Creation
    const work = (tx: Tx, actor: Actor) => createDraft(platform, tx, actor, body)
    return answerDocument(platform, request, reply, work, 201)
  })
  const editing = {
    tags,
    operationId: 'editDraft',
    summary: 'Change a draft; fields left out stay',
    params: shape.idParams,
    body: shape.editDraftBody,
    headers: shape.ifMatch,
    response: answers({ 200: shape.wholeDocument }, 404, 409, 412, 413, 415, 422, 428),
  }
  app.patch('/api/v2/drafts/:id', { config: write, bodyLimit, schema: editing }, (request, reply) => {
    const target = targetOf(request, 'draft')
    const body = request.body as Edit
    const work = (tx: Tx, actor: Actor) => edit(platform, tx, actor, target, body)
    return answerDocument(platform, request, reply, work)
  })
  const deleting = {
    tags,
    operationId: 'deleteDraft',
    summary: 'Delete a draft; its history stays',
    params: shape.idParams,
    headers: shape.ifMatch,
    response: answers({ 204: nothing('It is gone') }, 404, 412, 428),
  }
  app.delete('/api/v2/drafts/:id', { config: write, schema: deleting }, (request, reply) => {
    const target = targetOf(request, 'draft')
    return runCommand(platform, request, reply, async (tx, actor) => {
      await remove(platform, tx, actor, target)
      return { status: 204 }
    })
  })
}

function reads(app: FastifyInstance, platform: Platform): void {
  const listing = {
    tags,
    operationId: 'listDrafts',
    summary: 'Drafts you own or contribute to',
    querystring: shape.draftListQuery,
    response: answers({ 200: shape.documentList }),
  }
  app.get('/api/v2/drafts', { config: read, schema: listing }, (request, reply) =>
    answerList(platform, request, reply, 'draft'),
  )
  const reading = {
    tags,
    operationId: 'getDraft',
    summary: 'One draft',
    params: shape.idParams,
    response: answers({ 200: shape.wholeDocument, 304: nothing('As you know it') }, 404),
  }
  app.get('/api/v2/drafts/:id', { config: read, schema: reading }, (request, reply) =>
    answerOne(platform, request, reply, 'draft'),
  )
}
