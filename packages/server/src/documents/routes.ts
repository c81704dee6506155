/** Routes of the room documents. */
import type { FastifyInstance } from 'fastify'
import type { Platform } from '../platform.ts'

export function documentRoutes(_app: FastifyInstance, _platform: Platform): void {}
