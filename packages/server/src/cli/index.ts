/**
 * The server's part of the bin `hermod`: its commands, its schema for `migrate`, and the outbox that
 * `work` serves. What a command needs is loaded when it runs, so that the others stay quick.
 */
import type { Command, Context, OpenOutbox } from 'hermod/cli'
import { serverSchema } from '../migrate.ts'
import { command as config } from './commands/config.ts'
import { command as dev } from './commands/dev.ts'
import { command as importDocuments } from './commands/import.ts'
import { command as people } from './commands/people.ts'
import { command as serve } from './commands/serve.ts'
import { sourcesOf } from './config-options.ts'

export const commands: readonly Command[] = [serve, dev, config, people, importDocuments]

export const schemas = [serverSchema] as const

export async function openOutbox(context: Context): Promise<OpenOutbox> {
  const { openPlatformOutbox } = await import('./open-outbox.ts')
  return openPlatformOutbox(context)
}

export async function eventDays(context: Context): Promise<number | undefined> {
  const { inspectConfig } = await import('../read-config.ts')
  return inspectConfig({ ...sourcesOf(context), secretNeeded: false }).config?.retention.eventDays
}
