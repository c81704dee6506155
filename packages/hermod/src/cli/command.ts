/** What a command is, and what it is given. The server's commands have the same shape. */
import type { ParseArgsConfig } from 'node:util'
import type { Terminal } from './terminal.ts'
import { usage } from './usage.ts'

export { usage } from './usage.ts'

export type Options = NonNullable<ParseArgsConfig['options']>

export interface Command {
  readonly name: string
  /** One line, for the list of commands. */
  readonly summary: string
  readonly usage: string
  /** Shown first in its help; each can be run as it is. */
  readonly examples: readonly string[]
  /** The command's own options; every command also has the common ones. */
  readonly options?: Readonly<Record<string, CommandOption>>
  /** What else a person should know. */
  readonly notes?: readonly string[]
  run(context: Context): Promise<number>
}

export interface CommandOption {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  /** Name of the value: `--lanes N`. */
  readonly value?: string
  readonly says: string
}

export interface Context {
  /** The arguments after the command, without options. */
  readonly args: readonly string[]
  readonly values: Readonly<Record<string, string | boolean | undefined>>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly terminal: Terminal
}

/** Understood by every command. */
export const commonOptions: Readonly<Record<string, CommandOption>> = {
  json: { type: 'boolean', says: 'one JSON document instead of text; errors too' },
  plain: { type: 'boolean', says: 'tables as tab-separated lines' },
  quiet: { type: 'boolean', short: 'q', says: 'only data, no messages' },
  'no-color': { type: 'boolean', says: 'no colour (also: NO_COLOR)' },
  'no-input': { type: 'boolean', says: 'never ask; fail instead' },
  yes: { type: 'boolean', short: 'y', says: 'answer yes to every question' },
  url: { type: 'string', value: 'URL', says: 'the database; DATABASE_URL when left out' },
  help: { type: 'boolean', short: 'h', says: 'this help' },
}

/** A whole number of an option, or undefined. */
export function numberOf(context: Context, name: string): number | undefined {
  const value = context.values[name]
  if (value === undefined) return undefined
  if (typeof value === 'string' && /^\d{1,9}$/.test(value)) return Number(value)
  throw usage(`--${name} must be a whole number (got ${JSON.stringify(value)})`)
}

export function textOf(context: Context, name: string): string | undefined {
  const value = context.values[name]
  return typeof value === 'string' ? value : undefined
}

export function flagOf(context: Context, name: string): boolean {
  return context.values[name] === true
}
