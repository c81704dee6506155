/** The platform's outbox with its reactions, for `hermod work`. */
import type { Context, OpenOutbox, Purpose } from 'hermod/cli'
import { createPlatform } from '../create-platform.ts'
import { watchWorkspace } from '../documents/workspace/watch.ts'
import { createLog } from '../log.ts'
import { assertServerMigrated } from '../migrate.ts'
import { installReactions } from '../reactions.ts'
import { readConfig } from '../read-config.ts'
import { sourcesOf } from './config-options.ts'

export async function openPlatformOutbox(context: Context, purpose: Purpose = 'work'): Promise<OpenOutbox> {
  const config = readConfig({ ...sourcesOf(context), secretNeeded: false })
  const log = createLog(config.logLevel, { readable: process.stdout.isTTY })
  const platform = createPlatform(config, { log })
  try {
    await assertServerMigrated(platform.pool)
    await installReactions(platform)
    // The worker that writes the files also watches them for edits.
    const watching = purpose === 'work' ? watchWorkspace(platform) : undefined
    const close = async () => {
      await watching?.stop()
      await platform.close()
    }
    return { outbox: platform.outbox, close, worker: { retention: config.retention } }
  } catch (error) {
    await platform.close()
    throw error
  }
}
