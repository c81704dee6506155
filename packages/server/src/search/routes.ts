/** Routes of the room search. */
import type { FastifyInstance } from 'fastify'
import type { Platform } from '../platform.ts'

export function searchRoutes(_app: FastifyInstance, _platform: Platform): void {}
