/** What the server adds to the bin where it is installed: `hermod-server/cli` exports this. */
import type { NumberedSql } from '../numbered-sql.ts'
import type { WorkerOptions } from '../options.ts'
import type { Outbox } from '../outbox.ts'
import type { Command, Context } from './command.ts'

export interface OpenOutbox {
  readonly outbox: Outbox
  /** How its workers are started; what the command line says comes on top. */
  readonly worker?: WorkerOptions
  close(): Promise<void>
}

export interface ServerPart {
  readonly commands: readonly Command[]
  /** Kept up to date by `hermod migrate`, after the engine's own. */
  readonly schemas: readonly NumberedSql[]
  /** The platform's outbox with its reactions: what `hermod work` serves without a config module. */
  readonly openOutbox: (context: Context, purpose?: Purpose) => Promise<OpenOutbox>
  /** How long its workers keep events; undefined where the configuration has problems. */
  readonly eventDays?: (context: Context) => Promise<number | undefined>
}

/** `ask`: start only what the command itself needs. */
export type Purpose = 'work' | 'ask'

const serverModule = 'hermod-server/cli'

/** Undefined where the server is not installed; installed and broken is an error. */
export async function serverPart(): Promise<ServerPart | undefined> {
  try {
    return (await import(serverModule)) as ServerPart
  } catch (error) {
    const { code, message } = error as { code?: unknown; message?: unknown }
    const absent = String(message).startsWith("Cannot find package 'hermod-server")
    if (code === 'ERR_MODULE_NOT_FOUND' && absent) return undefined
    throw error
  }
}
