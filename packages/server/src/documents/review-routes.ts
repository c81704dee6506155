/** Reviews and approvals: a draft goes out, its approvers decide. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Actor } from '../actor.ts'
import { answers } from '../http/responses.ts'
import type { Platform, Tx } from '../platform.ts'
import { versionSeen } from '../version-tags.ts'
import { answerDocument, bodyMayBeMissing } from './answers.ts'
import { approve, changeDecision, type Deciding, requestChanges } from './approvals.ts'
import { publish } from './commands.ts'
import type { Decision } from './document.ts'
import * as shape from './schemas.ts'

const config = { permission: 'document:write' as const }
const preValidation = bodyMayBeMissing
const response = answers({ 200: shape.wholeDocument }, 404, 409, 412, 413, 415, 422, 428)

function deciding(request: FastifyRequest): Deciding {
  const { id } = request.params as { id: string }
  return { id, seen: versionSeen(request.headers['if-match']) }
}

export function reviewRoutes(app: FastifyInstance, platform: Platform): void {
  const schema = {
    tags: ['reviews'],
    operationId: 'publishDraft',
    summary: 'Publish a draft: it gets its number and is In-Review',
    params: shape.idParams,
    headers: shape.bothHeaders,
    response,
  }
  app.post('/api/v2/reviews/:id', { config, schema }, (request, reply) => {
    const target = deciding(request)
    const work = (tx: Tx, actor: Actor) => publish(platform, tx, actor, target)
    return answerDocument(platform, request, reply, work)
  })
  approvals(app, platform)
}

function approvals(app: FastifyInstance, platform: Platform): void {
  const common = { tags: ['approvals'], params: shape.idParams, response }
  const approving = {
    ...common,
    operationId: 'approve',
    summary: 'Approve a document you were asked about',
    body: shape.decisionBody,
    headers: shape.bothHeaders,
  }
  app.post('/api/v2/approvals/:id', { config, preValidation, schema: approving }, (request, reply) => {
    const target = deciding(request)
    const { comment } = request.body as { comment?: string }
    const work = (tx: Tx, actor: Actor) => approve(platform, tx, actor, target, comment)
    return answerDocument(platform, request, reply, work)
  })
  const changing = {
    ...common,
    operationId: 'changeDecision',
    summary: 'Change your decision or its comment',
    body: shape.changeDecisionBody,
    headers: shape.ifMatch,
  }
  app.patch('/api/v2/approvals/:id', { config, schema: changing }, (request, reply) => {
    const target = deciding(request)
    const wish = request.body as { decision?: Decision; comment?: string }
    const work = (tx: Tx, actor: Actor) => changeDecision(platform, tx, actor, target, wish)
    return answerDocument(platform, request, reply, work)
  })
  const refusing = {
    ...common,
    operationId: 'requestChanges',
    summary: 'Request changes',
    body: shape.decisionBody,
    headers: shape.ifMatch,
  }
  app.delete('/api/v2/approvals/:id', { config, preValidation, schema: refusing }, (request, reply) => {
    const target = deciding(request)
    const { comment } = request.body as { comment?: string }
    const work = (tx: Tx, actor: Actor) => requestChanges(platform, tx, actor, target, comment)
    return answerDocument(platform, request, reply, work)
  })
}
