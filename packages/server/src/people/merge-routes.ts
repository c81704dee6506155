/** Routes that merge and unmerge people. Both need a recent sign-in. */
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { actorOf } from '../http/actor-of.ts'
import { runCommand } from '../http/command.ts'
import { answers } from '../http/responses.ts'
import type { Platform } from '../platform.ts'
import { Problem } from '../problems.ts'
import { assertRecent } from '../recent-sign-in.ts'
import { mergePeople, previewMerge, undoMerge } from './merge.ts'
import type { Pair } from './references.ts'
import * as shapes from './schemas.ts'

const config = { permission: 'person:admin' as const }
const tags = ['people']

export function mergeRoutes(app: FastifyInstance, platform: Platform): void {
  merging(app, platform)
  undoing(app, platform)
}

function merging(app: FastifyInstance, platform: Platform): void {
  const schema = {
    tags,
    operationId: 'mergePeople',
    summary: 'Make two people one, or count what it changes',
    params: shapes.idParams,
    querystring: shapes.dryRunQuery,
    body: shapes.mergeBody,
    response: answers({ 200: shapes.merged }, 404, 409, 413, 415, 422),
  }
  app.post('/api/v2/people/:id/merge', { config, schema }, async (request, reply) => {
    const { id } = request.params as Static<typeof shapes.idParams>
    const { dryRun } = request.query as Static<typeof shapes.dryRunQuery>
    const body = request.body as Static<typeof shapes.mergeBody>
    const pair = pairOf(id, body)
    assertRecent(actorOf(request), platform.clock())
    if (dryRun) return reply.send({ dryRun, ...(await previewMerge(platform.pool, pair)) })
    return runCommand(platform, request, reply, async (tx, actor) => {
      const { from, into } = await previewMerge(tx, pair)
      const request = { ...pair, reason: body.reason }
      const { mergeId, counts } = await mergePeople(platform, tx, actor, request)
      return { status: 200, body: { dryRun, mergeId, from, into, counts } }
    })
  })
}

function pairOf(id: string, { from, into }: Static<typeof shapes.mergeBody>): Pair {
  if (from !== undefined && into === undefined) return { from, into: id }
  if (into !== undefined && from === undefined) return { from: id, into }
  const detail = 'must name either into (this person goes) or from (this person stays)'
  throw new Problem('HMD_REQUEST_INVALID', `The body ${detail}.`, {
    errors: [{ pointer: '/', detail }],
  })
}

function undoing(app: FastifyInstance, platform: Platform): void {
  const schema = {
    tags,
    operationId: 'undoMerge',
    summary: 'Undo a merge',
    params: shapes.mergeParams,
    body: shapes.undoBody,
    response: answers({ 200: shapes.unmerged }, 404, 409, 413, 415),
  }
  app.post('/api/v2/people/merges/:mergeId/undo', { config, schema }, (request, reply) => {
    const { mergeId } = request.params as Static<typeof shapes.mergeParams>
    const { reason } = request.body as Static<typeof shapes.undoBody>
    return runCommand(platform, request, reply, async (tx, actor) => ({
      status: 200,
      body: await undoMerge(platform, tx, actor, { mergeId, reason }),
    }))
  })
}
