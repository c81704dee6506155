/** Routes of the room people. */
import type { FastifyInstance } from 'fastify'
import type { Platform } from '../platform.ts'

export function peopleRoutes(_app: FastifyInstance, _platform: Platform): void {}
