/**
 * Limits on requests: rate, time and size. Requests are counted per principal and process; costly routes
 * have a bucket of their own, and an overloaded process answers 503 early.
 */
import { Socket } from 'node:net'
import rateLimit from '@fastify/rate-limit'
import underPressure from '@fastify/under-pressure'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { Config } from '../config.ts'
import { Problem } from '../problems.ts'
import { networkOf } from './address.ts'

/** Share of `limits.perMinute` that a bucket allows: with 1,200 a minute, 20 imports and 60 sign-ins. */
const shares = { import: 1 / 60, signIn: 1 / 20 }

export type Bucket = keyof typeof shares

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Counted on its own, more tightly. */
    bucket?: Bucket
    /** A body that is read as a stream and may take long. */
    slowBody?: boolean
  }
}

const windowMs = 60_000
/** Ignores the event-loop delay of the start, which comes from compiling the schemas. */
const settleMs = 3_000

/** After authentication, before the body is read. */
export async function limitRates(app: FastifyInstance, { limits }: Config): Promise<void> {
  app.addHook('onRoute', (route) => ownBucket(route, limits.perMinute))
  await app.register(rateLimit, {
    max: limits.perMinute,
    timeWindow: windowMs,
    hook: 'onRequest',
    enableDraftSpec: true,
    keyGenerator: keyOf,
    errorResponseBuilder: (_request, { max, ttl }) => tooMany(max, ttl),
  })
}

function ownBucket(route: RouteOptions, perMinute: number): void {
  const bucket = route.config?.bucket
  if (bucket === undefined) return
  const max = Math.max(1, Math.floor(perMinute * shares[bucket]))
  route.config = { ...route.config, rateLimit: { max, timeWindow: windowMs, groupId: bucket } }
}

/** A person is one caller, however many tokens they hold; without a person it is the address. */
function keyOf({ principal, ip }: FastifyRequest): string {
  if (principal === null) return `ip ${networkOf(ip)}`
  return principal.personId === null ? principal.identity : `person ${principal.personId}`
}

export function tooMany(max: number, ttlMs: number): Problem {
  const seconds = Math.max(1, Math.ceil(ttlMs / 1000))
  return new Problem(
    'HMD_RATE_LIMITED',
    `At most ${max} requests a minute are answered here; try again in ${seconds} s.`,
    { headers: { 'retry-after': String(seconds) } },
  )
}

/** Health checks are always answered: a busy process is not a dead one. */
export async function shedLoad(app: FastifyInstance, loopDelayMaxMs: number): Promise<void> {
  let readyMs = Number.POSITIVE_INFINITY
  app.addHook('onReady', async () => {
    readyMs = performance.now()
  })
  await app.register(underPressure, {
    maxEventLoopDelay: loopDelayMaxMs,
    pressureHandler: async ({ url }) => {
      if (url.startsWith('/healthz') || url.startsWith('/readyz')) return
      if (performance.now() - readyMs < settleMs) return
      throw new Problem('HMD_UNAVAILABLE', 'The server is overloaded; try again shortly.', {
        headers: { 'retry-after': '5' },
      })
    },
  })
}

/** A client that sends its body too slowly gets an answer, and the connection is closed. */
export function limitSlowBodies(app: FastifyInstance, bodyMs: number): void {
  app.addHook('preParsing', async (request, reply, payload) => {
    if (request.routeOptions.config.slowBody) return payload
    const timer = setTimeout(() => {
      reply.header('connection', 'close').send(tooSlow(bodyMs))
    }, bodyMs)
    for (const end of ['end', 'close', 'error']) payload.once(end, () => clearTimeout(timer))
    return payload
  })
}

/** Whoever was answered before their body arrived has a moment to finish; then the socket goes to somebody else. */
export function closeUnread(app: FastifyInstance, unreadBodyMs: number): void {
  app.addHook('onResponse', async ({ raw }) => {
    // A request that was made up in this process has no socket.
    if (raw.complete || raw.destroyed || !(raw.socket instanceof Socket)) return
    const timer = setTimeout(() => raw.socket.destroy(), unreadBodyMs).unref()
    for (const end of ['end', 'close', 'error']) raw.once(end, () => clearTimeout(timer))
  })
}

function tooSlow(bodyMs: number): Problem {
  return new Problem('HMD_REQUEST_SLOW', `The body did not arrive within ${bodyMs / 1000} s.`)
}
