/**
 * Checks who is asking, how often they ask, and whether they may use this route: in this order, and
 * before a byte of the body is read.
 */
import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { Authenticate } from '../access/authenticate.ts'
import type { Principal } from '../actor.ts'
import type { Platform } from '../platform.ts'
import { Problem } from '../problems.ts'
import { keptAddress } from './address.ts'
import { FailedTokens } from './failed-tokens.ts'
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

  const failures = new FailedTokens(config.limits.perMinute)
  /** Failures are counted before anything is looked up: a good JWT shows by its signature, a good API token by its past. */
  async function known(request: FastifyRequest): Promise<Principal> {
    const { ip } = request
    const hash = tokenHashOf(request)
    const waitMs = failures.waitMs(ip)
    if (waitMs !== undefined && hash.ofApiToken && !failures.wasGood(hash.text)) {
      throw tooMany(config.limits.perMinute, waitMs)
    }
    try {
      const principal = await authenticate(request)
      failures.succeed(hash.text)
      return principal
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 401) throw error
      if (waitMs !== undefined) throw tooMany(config.limits.perMinute, waitMs)
      failures.fail(ip)
      throw error
    }
  }
}

function tokenHashOf({ headers }: FastifyRequest): { readonly text: string; readonly ofApiToken: boolean } {
  const { authorization = '' } = headers
  const text = createHash('sha256').update(authorization).digest('base64url')
  return { text, ofApiToken: /^bearer +hmd_/i.test(authorization) }
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
