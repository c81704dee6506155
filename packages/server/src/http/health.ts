/** Is the process alive, and is it ready: never waits for a destination. */
import type { FastifyInstance } from 'fastify'
import { assertServerMigrated } from '../migrate.ts'
import type { Platform } from '../platform.ts'
import { Problem } from '../problems.ts'

export function healthRoutes(app: FastifyInstance, platform: Platform): void {
  const open = { config: { permission: 'public' as const }, schema: { hide: true } }
  app.get('/healthz', open, async () => ({ status: 'ok' }))
  app.get('/readyz', open, async () => {
    await ready(platform)
    return { status: 'ok' }
  })
}

async function ready({ pool }: Platform): Promise<void> {
  try {
    await assertServerMigrated(pool)
  } catch (error) {
    const { message } = error as Error
    throw new Problem('HMD_UNAVAILABLE', `Not ready: ${message}`, {
      headers: { 'retry-after': '5' },
      cause: error,
    })
  }
}
