/** The actor of a request: who authentication says it is, and where the request came from. */
import type { FastifyRequest } from 'fastify'
import type { Actor, Principal } from '../actor.ts'
import { Problem } from '../problems.ts'

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal | null
    /** What of the caller's address may be kept. */
    keptIp: string | null
  }
  interface FastifyContextConfig {
    /** What a caller needs; `public` = nothing at all. */
    permission?: import('../permissions.ts').Permission | 'public'
  }
}

export function actorOf(request: FastifyRequest): Actor {
  const { principal } = request
  if (principal === null) throw new Problem('HMD_UNAUTHENTICATED', 'Send a bearer token.')
  const { traceparent } = request.headers
  return {
    ...principal,
    endpoint: `${request.method} ${templateOf(request.routeOptions.url ?? request.url)}`,
    userAgent: request.headers['user-agent']?.slice(0, 500) ?? null,
    ip: request.keptIp,
    requestId: request.id,
    ...(typeof traceparent === 'string' && /^[0-9a-f-]{55}$/.test(traceparent) && { traceparent }),
  }
}

/** `/documents/:id` as OpenAPI writes it: `/documents/{id}`. */
function templateOf(url: string): string {
  return url.replace(/:(\w+)/g, '{$1}')
}
