/** The platform for one command of people, and who it acts as: whoever has the shell. */
import { randomUUID } from 'node:crypto'
import { userInfo } from 'node:os'
import type { Context } from 'hermod/cli'
import type { Actor } from '../../actor.ts'
import { createPlatform } from '../../create-platform.ts'
import { assertServerMigrated } from '../../migrate.ts'
import { permissionsOf } from '../../permissions.ts'
import type { Platform } from '../../platform.ts'
import { readConfig } from '../../read-config.ts'
import { sourcesOf } from '../config-options.ts'
import type { Given } from './verb.ts'

export async function withPlatform<T>(context: Context, work: (platform: Platform) => Promise<T>): Promise<T> {
  const config = readConfig({ ...sourcesOf(context), secretNeeded: false })
  const platform = createPlatform({ ...config, logLevel: 'silent' }, { poolMax: 4 })
  try {
    await assertServerMigrated(platform.pool)
    return await work(platform)
  } finally {
    await platform.close()
  }
}

export function actorOfShell({ name }: Given, now: Date): Actor {
  return {
    personId: null,
    identity: `shell:${userName()}`,
    role: 'admin',
    permissions: permissionsOf('admin'),
    signedInAt: now,
    endpoint: `hermod people ${name}`,
    userAgent: null,
    ip: null,
    requestId: randomUUID(),
  }
}

/** A container may have no name for its user. */
export function userName(): string {
  try {
    return userInfo().username.replace(/[^\w.-]/g, '_') || 'unknown'
  } catch {
    return 'unknown'
  }
}
