/**
 * The HTTP application: security headers, limits, authentication and permission in one place, then
 * the rooms. Every route under /api names the permission it needs, or it is refused at start.
 */
import helmet from '@fastify/helmet'
import rateLimit from '@fastify/rate-limit'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { type FastifyBaseLogger, type FastifyInstance, fastify, type RouteOptions } from 'fastify'
import { authenticator } from '../access/authenticate.ts'
import { tokenRoutes } from '../access/routes.ts'
import { documentRoutes } from '../documents/routes.ts'
import { peopleRoutes } from '../people/routes.ts'
import type { Platform } from '../platform.ts'
import { Problem } from '../problems.ts'
import { searchRoutes } from '../search/routes.ts'
import { keptAddress } from './address.ts'
import { healthRoutes } from './health.ts'
import { rememberMethods } from './methods.ts'
import { serveOpenApi } from './openapi.ts'
import { answerProblem } from './problem-answers.ts'
import { validatorCompiler } from './validate.ts'

export type App = FastifyInstance

const contentSecurityPolicy = {
  useDefaults: false,
  directives: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    styleSrc: ["'self'"],
    imgSrc: ["'self'", 'data:'],
    fontSrc: ["'self'"],
    connectSrc: ["'self'"],
    baseUri: ["'none'"],
    formAction: ["'self'"],
    frameAncestors: ["'none'"],
  },
}

export async function buildApp(platform: Platform): Promise<App> {
  const { config, log } = platform
  const app = fastify({
    loggerInstance: log as FastifyBaseLogger,
    disableRequestLogging: true,
    trustProxy: config.trustProxy,
    bodyLimit: config.limits.bodyBytes,
    requestIdHeader: false,
    genReqId: ({ headers }) => requestId(headers['x-request-id']),
    routerOptions: { maxParamLength: 600 },
  }).withTypeProvider<TypeBoxTypeProvider>()
  app.setValidatorCompiler(validatorCompiler)
  app.setErrorHandler(answerProblem)
  rememberMethods(app)
  app.addHook('onRoute', demandPermission)
  await app.register(helmet, { contentSecurityPolicy, referrerPolicy: { policy: 'no-referrer' } })
  await guard(app, platform)
  await serveOpenApi(app)
  healthRoutes(app, platform)
  tokenRoutes(app, platform)
  peopleRoutes(app, platform)
  documentRoutes(app, platform)
  searchRoutes(app, platform)
  return app
}

/** A caller's own id is kept when it is harmless, so that two logs can be laid side by side. */
function requestId(given: unknown): string {
  if (typeof given === 'string' && /^[\w.-]{1,64}$/.test(given)) return given
  return crypto.randomUUID()
}

function demandPermission({ url, config }: RouteOptions): void {
  if (url.startsWith('/api') && config?.permission === undefined) {
    throw new Error(`${url} names no permission`)
  }
}

/** Who is asking, how often they may ask, and whether this route is theirs to ask. */
async function guard(app: FastifyInstance, platform: Platform): Promise<void> {
  const authenticate = authenticator(platform)
  app.decorateRequest('principal', null)
  app.decorateRequest('keptIp', null)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    const { permission } = request.routeOptions.config
    if (permission === undefined || permission === 'public') return
    request.keptIp = keptAddress(request.ip, platform.config.auditIp)
    request.principal = await authenticate(request)
    if (request.principal.permissions.has(permission)) return
    throw new Problem('HMD_FORBIDDEN', `This needs the permission ${permission}.`)
  })
  await app.register(rateLimit, {
    max: platform.config.limits.perMinute,
    timeWindow: 60_000,
    hook: 'preHandler',
    keyGenerator: ({ principal, ip }) => principal?.personId ?? principal?.identity ?? ip,
    errorResponseBuilder: (_request, { max, after }) =>
      new Problem('HMD_RATE_LIMITED', `At most ${max} requests a minute; try again in ${after}.`),
  })
}
