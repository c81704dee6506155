/** Routes of the room documents. */
import type { FastifyInstance } from 'fastify'
import type { Platform } from '../platform.ts'
import { auditRoutes } from './audit/routes.ts'
import { publishedRoutes } from './document-routes.ts'
import { draftRoutes } from './draft-routes.ts'
import { importRoutes } from './import/routes.ts'
import { reviewRoutes } from './review-routes.ts'

export function documentRoutes(app: FastifyInstance, platform: Platform): void {
  draftRoutes(app, platform)
  reviewRoutes(app, platform)
  publishedRoutes(app, platform)
  auditRoutes(app, platform)
  importRoutes(app, platform)
}
