/**
 * `hermod work`: a worker for the outbox of your config module, or for the platform's where the server
 * is installed and there is no module. SIGTERM and Ctrl-C finish what is in flight and give the lanes
 * back; the second one leaves at once.
 */
import { type Command, type Context, numberOf, textOf } from '../command.ts'
import { configOption, openOutbox } from '../open-outbox.ts'
import { listenForSignals } from '../signals.ts'

const leaving = 'Leaving now; unfinished deliveries will be sent again.'

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
    config: configOption,
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
    'Without a config module it serves the reactions of the platform, where hermod-server is installed.',
    `The config module default-exports an outbox, or a function that returns one:

  import pg from 'pg'
  import { createOutbox } from 'hermod'
  const outbox = createOutbox({ pool: new pg.Pool({ connectionString: process.env.DATABASE_URL }) })
  outbox.subscribe('search', { revision: 1, types: ['document.*'], sink })
  export default outbox`,
  ],
  async run(context) {
    const { outbox, close, worker: usual } = await openOutbox(context)
    const signals = listenForSignals(context.terminal, leaving)
    try {
      const worker = await outbox.start({ ...usual, ...workerOptions(context) })
      context.terminal.say(`Working as ${worker.name}. Ctrl-C stops.`)
      const signal = await signals.first
      context.terminal.say('Stopping: what is in flight ends first. Once more leaves at once.')
      await worker.stop()
      context.terminal.say('Stopped.')
      return signal === 'SIGINT' ? 130 : 0
    } finally {
      signals.end()
      await close()
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
