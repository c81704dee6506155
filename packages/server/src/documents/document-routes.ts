/** Published documents: read by everybody, changed by their owners and contributors. */
import type { FastifyInstance } from 'fastify'
import type { Actor } from '../actor.ts'
import { runCommand } from '../http/command.ts'
import { answers, nothing } from '../http/responses.ts'
import type { Platform, Tx } from '../platform.ts'
import { answerDocument, answerList, answerOne, targetOf } from './answers.ts'
import { type Creation, createDocument, remove } from './commands.ts'
import type { CustomFields } from './document.ts'
import { type Edit, edit, type Replacement, replace } from './edit.ts'
import * as shape from './schemas.ts'

const tags = ['documents']
const read = { permission: 'document:read' as const }
const config = { permission: 'document:write' as const }

export function publishedRoutes(app: FastifyInstance, platform: Platform): void {
  reads(app, platform)
  creates(app, platform)
  changes(app, platform)
  const deleting = {
    tags,
    operationId: 'deleteDocument',
    summary: 'Delete a document; its history stays',
    params: shape.idParams,
    headers: shape.ifMatch,
    response: answers({ 204: nothing('It is gone') }, 404, 412, 428),
  }
  app.delete('/api/v2/documents/:id', { config, schema: deleting }, (request, reply) => {
    const target = targetOf(request, 'document')
    return runCommand(platform, request, reply, async (tx, actor) => {
      await remove(platform, tx, actor, target)
      return { status: 204 }
    })
  })
}

function reads(app: FastifyInstance, platform: Platform): void {
  const listing = {
    tags,
    operationId: 'listDocuments',
    summary: 'Published documents',
    querystring: shape.documentListQuery,
    response: answers({ 200: shape.documentList }),
  }
  app.get('/api/v2/documents', { config: read, schema: listing }, (request, reply) =>
    answerList(platform, request, reply, 'document'),
  )
  const reading = {
    tags,
    operationId: 'getDocument',
    summary: 'One published document',
    params: shape.idParams,
    response: answers({ 200: shape.wholeDocument, 304: nothing('As you know it') }, 404),
  }
  app.get('/api/v2/documents/:id', { config: read, schema: reading }, (request, reply) =>
    answerOne(platform, request, reply, 'document'),
  )
}

function creates(app: FastifyInstance, platform: Platform): void {
  const bodyLimit = platform.config.limits.documentBytes
  const schema = {
    tags,
    operationId: 'createDocument',
    summary: 'Publish without a draft, or register a file of google, s3 or azure',
    body: shape.newDocumentBody,
    headers: shape.keyHeader,
    response: answers({ 201: shape.wholeDocument }, 409, 413, 415, 422),
  }
  app.post('/api/v2/documents', { config, bodyLimit, schema }, (request, reply) => {
    const body = request.body as Creation
    const work = (tx: Tx, actor: Actor) => createDocument(platform, tx, actor, body)
    return answerDocument(platform, request, reply, work, 201)
  })
}

function changes(app: FastifyInstance, platform: Platform): void {
  const bodyLimit = platform.config.limits.documentBytes
  const common = {
    tags,
    params: shape.idParams,
    headers: shape.ifMatch,
    response: answers({ 200: shape.wholeDocument }, 404, 409, 412, 413, 415, 422, 428),
  }
  const replacing = {
    ...common,
    operationId: 'replaceDocument',
    body: shape.replaceDocumentBody,
    summary: 'Replace what is written; fields left out become empty',
  }
  app.put('/api/v2/documents/:id', { config, bodyLimit, schema: replacing }, (request, reply) => {
    const target = targetOf(request, 'document')
    const empty = { summary: '', content: '', tags: [], contributors: [], approvers: [] }
    const given = request.body as Replacement & { readonly customFields?: CustomFields }
    const body = { ...empty, ...given, customFields: given.customFields ?? {} }
    const work = (tx: Tx, actor: Actor) => replace(platform, tx, actor, target, body)
    return answerDocument(platform, request, reply, work)
  })
  const editing = {
    ...common,
    operationId: 'editDocument',
    body: shape.editDocumentBody,
    summary: 'Change a document or its status; fields left out stay',
  }
  app.patch('/api/v2/documents/:id', { config, bodyLimit, schema: editing }, (request, reply) => {
    const target = targetOf(request, 'document')
    const body = request.body as Edit
    const work = (tx: Tx, actor: Actor) => edit(platform, tx, actor, target, body)
    return answerDocument(platform, request, reply, work)
  })
}
