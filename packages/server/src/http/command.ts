/**
 * Runs one command of a request in one transaction, once per Idempotency-Key: the key, what was
 * asked and what was answered are stored with the write itself.
 */
import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Actor } from '../actor.ts'
import { type Platform, type Tx, transaction } from '../platform.ts'
import { Problem } from '../problems.ts'
import { actorOf } from './actor-of.ts'

export interface Answer {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Added to the body the first time and never stored: a secret. */
  readonly unstored?: Readonly<Record<string, unknown>>
}

export type Work = (tx: Tx, actor: Actor) => Promise<Answer>

export async function runCommand(
  platform: Platform,
  request: FastifyRequest,
  reply: FastifyReply,
  work: Work,
  { keyNeeded = false } = {},
): Promise<FastifyReply> {
  const actor = actorOf(request)
  const key = request.method === 'POST' ? keyOf(request, keyNeeded) : undefined
  const answer = await transaction(platform, (tx) =>
    key === undefined ? work(tx, actor) : once(tx, actor, key, fingerprint(request), work),
  )
  return send(reply, answer)
}

export function send(reply: FastifyReply, answer: Answer): FastifyReply {
  const { status, body, headers = {}, unstored } = answer
  reply.code(status)
  for (const [name, value] of Object.entries(headers)) reply.header(name, value)
  if (unstored !== undefined) return reply.send({ ...(body as object), ...unstored })
  return body === undefined ? reply.send() : reply.send(body)
}

/** The draft of the header asks for a quoted string; a bare word is accepted too. */
export function keyOf(request: FastifyRequest, needed: boolean): string | undefined {
  const given = request.headers['idempotency-key']
  if (given === undefined) {
    if (!needed) return undefined
    throw new Problem('HMD_KEY_MISSING', 'Send an Idempotency-Key: any new text per request.', {
      errors: [{ pointer: 'header Idempotency-Key', detail: 'is missing' }],
    })
  }
  const key = String(given).replace(/^"(.*)"$/, '$1')
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key
  const detail = 'must be 1 to 255 printable characters without spaces'
  throw new Problem('HMD_REQUEST_INVALID', `Idempotency-Key ${detail}`, {
    errors: [{ pointer: 'header Idempotency-Key', detail }],
  })
}

function fingerprint({ method, url, body }: FastifyRequest): string {
  return createHash('sha256')
    .update(`${method} ${url}\n${JSON.stringify(body ?? null)}`)
    .digest('hex')
}

async function once(tx: Tx, actor: Actor, key: string, asked: string, work: Work): Promise<Answer> {
  const principal = actor.personId === null ? actor.identity : `person:${actor.personId}`
  await lockKey(tx, principal, key)
  const before = await given(tx, principal, key, asked)
  if (before !== undefined) return before
  const answer = await work(tx, actor)
  const { status, headers = {}, body } = answer
  await tx.query(
    `insert into hermod.idempotency (principal, key, fingerprint, status, headers, body)
     values ($1, $2, $3, $4, $5, $6)`,
    [principal, key, asked, status, headers, body === undefined ? null : JSON.stringify(body)],
  )
  return answer
}

async function lockKey(tx: Tx, principal: string, key: string): Promise<void> {
  const { rows } = await tx.query<{ mine: boolean }>(
    'select pg_try_advisory_xact_lock(hashtextextended($1, 7)) as mine',
    [`${principal}\u0001${key}`],
  )
  if (rows[0]?.mine) return
  throw new Problem('HMD_KEY_IN_USE', 'Wait for its answer, then repeat the request.', {
    headers: { 'retry-after': '1' },
  })
}

async function given(tx: Tx, principal: string, key: string, asked: string): Promise<Answer | undefined> {
  const { rows } = await tx.query(
    `select fingerprint, status, headers, body from hermod.idempotency
      where principal = $1 and key = $2 and created_at > now() - interval '24 hours'`,
    [principal, key],
  )
  const [row] = rows
  if (row === undefined) {
    await tx.query('delete from hermod.idempotency where principal = $1 and key = $2', [principal, key])
    return undefined
  }
  if (row.fingerprint !== asked) {
    throw new Problem('HMD_KEY_REUSED', 'Use a new Idempotency-Key for a new request.')
  }
  const body = row.body === null ? {} : { body: JSON.parse(row.body) }
  return { status: row.status, headers: { ...row.headers, 'idempotent-replayed': 'true' }, ...body }
}
