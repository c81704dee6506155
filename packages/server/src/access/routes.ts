/** Routes of the room access. */
import type { FastifyInstance } from 'fastify'
import type { Platform } from '../platform.ts'

export function tokenRoutes(_app: FastifyInstance, _platform: Platform): void {}
