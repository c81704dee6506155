/** Is the process alive, and is it ready: never waits for a destination. */
import type { FastifyInstance } from 'fastify'
import { assertMigrated, HermodError } from 'hermod'
import { errorFields } from '../log-fields.ts'
import { assertServerMigrated } from '../migrate.ts'
import type { Platform } from '../platform.ts'
import { Problem } from '../problems.ts'

/** Answers within this time: an orchestrator asks again anyway. */
const readyMs = 2_000

export function healthRoutes(app: FastifyInstance, platform: Platform): void {
  const open = {
    config: { permission: 'public' as const, rateLimit: false as const },
    schema: { hide: true },
  }
  app.get('/healthz', open, async () => ({ status: 'ok' }))
  app.get('/readyz', open, async (request) => {
    try {
      await within(readyMs, ready(platform))
    } catch (error) {
      request.log.warn({ code: 'server.unready', ...errorFields(error) })
      throw notReady(error)
    }
    return { status: 'ok' }
  })
}

async function ready({ pool }: Platform): Promise<void> {
  await assertMigrated(pool)
  await assertServerMigrated(pool)
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/** The route is public, so it never shows a driver's message, which may name hosts and users. */
function notReady(error: unknown): Problem {
  const why = error instanceof HermodError ? error.message : 'the database does not answer'
  return new Problem('HMD_UNAVAILABLE', `Not ready: ${why}.`, {
    headers: { 'retry-after': '5' },
    cause: error,
  })
}
