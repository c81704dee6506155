/** One line per answer, at debug: which route, by whom, how long. Never what was sent or said. */
import type { FastifyInstance } from 'fastify'

export function logRequests(app: FastifyInstance): void {
  app.addHook('onResponse', async (request, reply) => {
    request.log.debug({
      code: 'http.answered',
      method: request.method,
      // The template: an address line may carry a name, a search or a secret.
      route: request.routeOptions.url,
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime),
      actor: request.principal?.personId ?? undefined,
    })
  })
}
