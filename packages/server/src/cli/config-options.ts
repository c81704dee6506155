/** The options by which a command changes the configuration, and how they become its flags. */
import { type CommandOption, type Context, textOf } from 'hermod/cli'
import type { Sources } from '../read-config.ts'

export const configOptions = {
  config: { type: 'string', value: 'FILE', says: 'hermod.toml when left out' },
  host: { type: 'string', value: 'ADDRESS', says: 'address to listen on; 127.0.0.1' },
  port: { type: 'string', value: 'N', says: 'port to listen on; 4400, 0 = a free one' },
  'log-level': { type: 'string', value: 'LEVEL', says: 'fatal, error, warn, info, debug, trace' },
} as const satisfies Readonly<Record<string, CommandOption>>

export function sourcesOf(context: Context): Sources {
  const file = textOf(context, 'config')
  const flags = {
    databaseUrl: textOf(context, 'url'),
    host: textOf(context, 'host'),
    port: textOf(context, 'port'),
    logLevel: textOf(context, 'log-level'),
  }
  return { flags, env: context.env, ...(file !== undefined && { file }) }
}
