/**
 * A server from start to stop: refuses a database that is not migrated, listens, and stops within
 * the grace period: requests in flight are answered, new ones are refused.
 */
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { assertMigrated } from 'hermod'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { createPlatform, type OpenPlatform } from './create-platform.ts'
import { type App, buildApp } from './http/app.ts'
import { createLog } from './log.ts'
import { assertServerMigrated } from './migrate.ts'
import { installReactions } from './reactions.ts'

export interface ServeOptions {
  readonly log?: Logger
  /** Before anything else: migrations, where nobody else applies them. */
  readonly prepare?: (platform: OpenPlatform) => Promise<void>
  /** More routes, before it listens. */
  readonly extend?: (app: App, platform: OpenPlatform) => void | Promise<void>
  /** For requests in flight, after stop() was called. */
  readonly graceMs?: number
}

export interface RunningServer {
  /** `http://127.0.0.1:4400` */
  readonly url: string
  readonly app: App
  readonly platform: OpenPlatform
  /** Harmless when called twice. */
  stop(): Promise<void>
}

export async function startServer(config: Config, options: ServeOptions = {}): Promise<RunningServer> {
  const log = options.log ?? createLog(config.logLevel)
  const platform = createPlatform(config, { log })
  try {
    const app = await listening(platform, options)
    const stop = once(() => close(app, platform, options.graceMs ?? 25_000))
    return { url: urlOf(app), app, platform, stop }
  } catch (error) {
    await platform.close()
    throw error
  }
}

async function listening(platform: OpenPlatform, options: ServeOptions): Promise<App> {
  const { config, pool } = platform
  await options.prepare?.(platform)
  await assertMigrated(pool)
  await assertServerMigrated(pool)
  await installReactions(platform)
  const app = await buildApp(platform)
  try {
    await options.extend?.(app, platform)
    await app.listen({ host: config.host, port: config.port })
    return app
  } catch (error) {
    await app.close()
    throw error
  }
}

function urlOf(app: App): string {
  const { address, port, family } = app.server.address() as AddressInfo
  const host = family === 'IPv6' ? `[${address}]` : address
  return `http://${host}:${port}`
}

/** Answers requests in flight; what is not done at the end of the grace period is aborted. */
async function close(app: App, platform: OpenPlatform, graceMs: number): Promise<void> {
  const late = new AbortController()
  const cut = pause(graceMs, undefined, { signal: late.signal, ref: false }).then(
    () => app.server.closeAllConnections(),
    () => {},
  )
  await app.close()
  late.abort()
  await cut
  await platform.close()
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => {
    done ??= work()
    return done
  }
}
