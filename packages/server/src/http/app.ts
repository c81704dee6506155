/**
 * The HTTP application: security headers, limits, authentication and permission in one place, then
 * the rooms. Every route under /api names the permission it needs, or it is refused at start.
 */
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from 'fastify'
import { authenticator } from '../access/authenticate.ts'
import { type DevelopmentIssuer, developmentIssuer, developmentRoutes } from '../access/development.ts'
import { tokenRoutes } from '../access/routes.ts'
import type { Config } from '../config.ts'
import { documentRoutes } from '../documents/routes.ts'
import { resolvePerson } from '../people/resolve.ts'
import { peopleRoutes } from '../people/routes.ts'
import type { Platform } from '../platform.ts'
import { searchRoutes } from '../search/routes.ts'
import { validatorCompiler } from '../validate.ts'
import { guard } from './guard.ts'
import { healthRoutes } from './health.ts'
import { readJson } from './json-body.ts'
import { closeUnread, limitSlowBodies, shedLoad } from './limits.ts'
import { rememberMethods } from './methods.ts'
import { serveOpenApi } from './openapi.ts'
import { pageRoutes } from './page.ts'
import { answerClientError, answerProblem } from './problem-answers.ts'
import { logRequests } from './request-log.ts'
import { problemSchema } from './responses.ts'
import { secureHeaders } from './security-headers.ts'
import { statusRoutes } from './status.ts'

export type App = FastifyInstance

export interface AppOptions {
  /** How long a body may take to arrive. */
  readonly bodyMs?: number
  /** How long the rest of a body may take once the answer was sent. */
  readonly unreadBodyMs?: number
  /** With a longer event-loop delay, the process answers 503. */
  readonly loopDelayMaxMs?: number
}

/** Headers within 15 s; a socket on which nothing moves for two minutes is closed. */
const patience = {
  connectionTimeout: 120_000,
  keepAliveTimeout: 72_000,
  http: { headersTimeout: 15_000, maxHeaderSize: 16_384 },
}

export async function buildApp(platform: Platform, options: AppOptions = {}): Promise<App> {
  const { config } = platform
  const development = config.development ? await developmentIssuer(config) : undefined
  const app = frameOf(platform)
  app.setValidatorCompiler(validatorCompiler)
  app.setErrorHandler(answerProblem)
  app.addSchema(problemSchema)
  readJson(app)
  const refuseUnknown = rememberMethods(app)
  logRequests(app)
  await secureHeaders(app)
  refuseUnknown()
  await shedLoad(app, options.loopDelayMaxMs ?? 1_000)
  await guard(app, platform, authenticator(platform, resolvePerson, development ? [development] : []))
  limitSlowBodies(app, options.bodyMs ?? 30_000)
  closeUnread(app, options.unreadBodyMs ?? 5_000)
  await serveOpenApi(app)
  rooms(app, platform, development)
  return app
}

function frameOf({ config, log }: Platform): App {
  return fastify({
    ...patience,
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'request_id',
    }),
    trustProxy: believed(config.trustProxy),
    bodyLimit: config.limits.bodyBytes,
    requestIdHeader: false,
    genReqId: ({ headers }) => requestId(headers['x-request-id']),
    frameworkErrors: answerProblem,
    clientErrorHandler: answerClientError,
    routerOptions: { maxParamLength: 600 },
  }).withTypeProvider<TypeBoxTypeProvider>()
}

/** Hop 0 is whoever holds the socket; what is left of the last proxy was written by the caller. */
function believed(proxies: Config['trustProxy']): false | string[] | ((address: string, hop: number) => boolean) {
  if (typeof proxies === 'number') return (_address, hop) => hop < proxies
  return proxies === false ? false : [...proxies]
}

/** A caller's own request id is kept if it is harmless, so that both logs can be compared. */
function requestId(given: unknown): string {
  if (typeof given === 'string' && /^[\w.-]{1,64}$/.test(given)) return given
  return crypto.randomUUID()
}

function rooms(app: App, platform: Platform, development: DevelopmentIssuer | undefined): void {
  pageRoutes(app)
  healthRoutes(app, platform)
  statusRoutes(app, platform)
  tokenRoutes(app, platform)
  peopleRoutes(app, platform)
  documentRoutes(app, platform)
  searchRoutes(app, platform)
  if (development !== undefined) developmentRoutes(app, development)
}
