/** The options of `npm start`. */
import { type CommandOption, type Context, flagOf, textOf, usage } from 'hermod/cli'

export interface DevOptions {
  /** Folder that keeps everything; a temporary one when `ephemeral`. */
  readonly data: string
  readonly port: number
  readonly reset: boolean
  readonly demo: boolean
  readonly ephemeral: boolean
}

export const usualPort = 4400

export const devOptions = {
  data: { type: 'string', value: 'DIR', says: 'keep everything here; ./.hermod when left out' },
  port: {
    type: 'string',
    value: 'N',
    says: `port of the page; ${usualPort}, the next free one if taken`,
  },
  reset: { type: 'boolean', says: 'delete what was kept and start over' },
  'no-demo': { type: 'boolean', says: 'no demo people, documents and edits' },
  ephemeral: { type: 'boolean', says: 'keep nothing: deleted on exit' },
} as const satisfies Readonly<Record<string, CommandOption>>

export function readDevOptions(context: Context): DevOptions {
  if (context.args.length > 0) throw usage(`dev takes no ${context.args[0]}`, 'See hermod dev --help.')
  if (textOf(context, 'url') !== undefined) {
    throw usage('dev brings its own database', 'For a database of yours: hermod serve, hermod work.')
  }
  const ephemeral = flagOf(context, 'ephemeral')
  const data = textOf(context, 'data')
  if (ephemeral && data !== undefined) throw usage('--ephemeral keeps nothing, --data keeps: choose one')
  return {
    data: data ?? '.hermod',
    ephemeral,
    port: portOf(context),
    reset: flagOf(context, 'reset'),
    demo: !flagOf(context, 'no-demo'),
  }
}

function portOf(context: Context): number {
  const text = textOf(context, 'port') ?? String(usualPort)
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port >= 0 && port <= 65_535) return port
  throw usage(`--port must be a whole number from 0 to 65535 (got ${JSON.stringify(text)})`)
}
