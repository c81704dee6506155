/**
 * `hermod work`: a worker for the outbox of your config module. SIGTERM and Ctrl-C finish what is in
 * flight and give the lanes back; the second one leaves at once.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Outbox } from '../../outbox.ts'
import { type Command, type Context, numberOf, textOf, usage } from '../command.ts'

const defaultConfig = 'hermod.config.mjs'

export const command: Command = {
  name: 'work',
  summary: 'run a worker for the subscriptions of your config module',
  usage: 'hermod work [--config FILE] [--subscription NAME] [--concurrency N]',
  examples: [
    'hermod work',
    'hermod work --config deploy/outbox.mjs',
    'hermod work --subscription search --concurrency 8',
  ],
  options: {
    config: { type: 'string', value: 'FILE', says: `${defaultConfig} when left out` },
    subscription: { type: 'string', value: 'NAME', says: 'serve only these (a,b)' },
    concurrency: {
      type: 'string',
      value: 'N',
      says: 'claim loops in this worker; 4 when left out',
    },
    name: {
      type: 'string',
      value: 'NAME',
      says: 'how the worker is called in status and attempts',
    },
  },
  notes: [
    `The config module default-exports an outbox, or a function that returns one:

  import pg from 'pg'
  import { createOutbox } from 'hermod'
  const outbox = createOutbox({ pool: new pg.Pool({ connectionString: process.env.DATABASE_URL }) })
  outbox.subscribe('search', { revision: 1, types: ['document.*'], sink })
  export default outbox`,
  ],
  async run(context) {
    const outbox = await loadOutbox(context)
    const signals = listenForSignals(context)
    try {
      const worker = await outbox.start(workerOptions(context))
      context.terminal.say(`Working as ${worker.name}. Ctrl-C stops.`)
      const signal = await signals.first
      context.terminal.say('Stopping: what is in flight ends first. Once more leaves at once.')
      await worker.stop()
      context.terminal.say('Stopped.')
      return signal === 'SIGINT' ? 130 : 0
    } finally {
      signals.end()
      await (outbox.db as { end?: () => Promise<void> }).end?.()
    }
  },
}

function workerOptions(context: Context) {
  const subscriptions = textOf(context, 'subscription')?.split(',')
  const concurrency = numberOf(context, 'concurrency')
  const name = textOf(context, 'name')
  return {
    ...(subscriptions && { subscriptions }),
    ...(concurrency !== undefined && { concurrency }),
    ...(name !== undefined && { name }),
  }
}

async function loadOutbox(context: Context): Promise<Outbox> {
  const file = resolve(textOf(context, 'config') ?? defaultConfig)
  if (!existsSync(file)) {
    throw usage(
      `there is no ${file}`,
      'Name your config module with --config FILE; see hermod help work.',
    )
  }
  const { default: exported } = await import(pathToFileURL(file).href)
  const outbox = typeof exported === 'function' ? await exported() : exported
  // By its shape: the module may have loaded another copy of the library.
  if (typeof outbox?.start === 'function' && outbox.db !== undefined) return outbox
  throw usage(`${file} does not default-export an outbox`, 'See hermod help work for an example.')
}

function listenForSignals({ terminal }: Context) {
  let told: (signal: NodeJS.Signals) => void = () => {}
  const first = new Promise<NodeJS.Signals>((resolve) => {
    told = resolve
  })
  let count = 0
  const hear = (signal: NodeJS.Signals) => {
    if (++count === 1) return told(signal)
    terminal.say('Leaving now; unfinished deliveries will be sent again.')
    process.exit(130)
  }
  process.on('SIGINT', hear).on('SIGTERM', hear)
  const end = () => {
    process.removeListener('SIGINT', hear).removeListener('SIGTERM', hear)
  }
  return { first, end }
}
