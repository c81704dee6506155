/**
 * Checks who is asking, how often they ask, and whether they may use this route: in this order, and
 * before a byte of the body is read.
 */
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { Authenticate } from '../access/authenticate.ts'
import type { Principal } from '../actor.ts'
import type { Platform } from '../platform.ts'
import { Problem } from '../problems.ts'
import { keptAddress } from './address.ts'
import { limitRates, tooMany } from './limits.ts'

export async function guard(app: FastifyInstance, { config }: Platform, authenticate: Authenticate): Promise<void> {
  app.decorateRequest('principal', null)
  app.decorateRequest('keptIp', null)
  app.addHook('onRoute', demandPermission)
  app.addHook('onRequest', async (request) => {
    if (isPublic(request)) return
    request.keptIp = keptAddress(request.ip, config.auditIp)
    request.principal = await known(request)
  })
  await limitRates(app, config)
  app.addHook('preParsing', async (request) => {
    if (!isPublic(request)) assertPermission(request)
  })

  // Failed tokens are counted per address, so a valid token is not affected by others' failures.
  const failures = app.createRateLimit({
    max: config.limits.perMinute,
    timeWindow: 60_000,
    keyGenerator: ({ ip }) => `failed ${ip}`,
  })
  async function known(request: FastifyRequest): Promise<Principal> {
    try {
      return await authenticate(request)
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 401) throw error
      const counted = await failures(request)
      if (!counted.isAllowed && counted.isExceeded) throw tooMany(counted.max, counted.ttl)
      throw error
    }
  }
}

/** A route of the API that names no permission is refused at start. */
function demandPermission({ url, config }: RouteOptions): void {
  if (url.startsWith('/api/') && config?.permission === undefined) {
    throw new Error(`${url} names no permission`)
  }
}

function isPublic({ routeOptions }: FastifyRequest): boolean {
  const { permission } = routeOptions.config
  return permission === undefined || permission === 'public'
}

function assertPermission({ principal, routeOptions }: FastifyRequest): void {
  const { permission } = routeOptions.config
  if (permission !== undefined && permission !== 'public') {
    if (principal?.permissions.has(permission)) return
    throw new Problem('HMD_FORBIDDEN', `This needs the permission ${permission}.`)
  }
}
