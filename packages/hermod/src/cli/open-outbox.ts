/** The outbox a command works on: that of the config module, or the platform's. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type CommandOption, type Context, textOf, usage } from './command.ts'
import { type OpenOutbox, type Purpose, serverPart } from './server-part.ts'

const defaultConfig = 'hermod.config.mjs'

export const configOption: CommandOption = {
  type: 'string',
  value: 'FILE',
  says: `${defaultConfig} when left out; a .toml is the server’s`,
}

/** The named module, else the usual one; without either, the platform's outbox where there is one. */
export async function openOutbox(context: Context, purpose: Purpose = 'work'): Promise<OpenOutbox> {
  const named = textOf(context, 'config')
  const file = resolve(named ?? defaultConfig)
  if (existsSync(file) && !file.endsWith('.toml')) return loadModule(file)
  const server = named === undefined || named.endsWith('.toml') ? await serverPart() : undefined
  if (server !== undefined) return server.openOutbox(context, purpose)
  throw usage(`there is no ${file}`, 'Name your config module with --config FILE; see hermod help work.')
}

async function loadModule(file: string): Promise<OpenOutbox> {
  const { default: exported } = await import(pathToFileURL(file).href)
  const outbox = typeof exported === 'function' ? await exported() : exported
  // Checked by shape, not by class: the module may have loaded another copy of the library.
  if (typeof outbox?.start === 'function' && outbox.db !== undefined) {
    return { outbox, close: async () => outbox.db.end?.() }
  }
  throw usage(`${file} does not default-export an outbox`, 'See hermod help work for an example.')
}
