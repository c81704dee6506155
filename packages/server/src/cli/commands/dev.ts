/** `hermod dev`, which is what `npm start` runs: everything on this machine, nothing to install. */
import { type Command, type Context, listenForSignals } from 'hermod/cli'
import { devOptions, readDevOptions } from '../../dev/options.ts'

export const command: Command = {
  name: 'dev',
  summary: 'try everything: a database, the server, a worker, catchers and a demo',
  usage: 'hermod dev [--data DIR | --ephemeral] [--port N] [--reset] [--no-demo]',
  examples: ['hermod dev', 'hermod dev --port 8080 --data /tmp/hermod', 'hermod dev --ephemeral --no-demo'],
  options: devOptions,
  notes: [
    'For development only: it listens on loopback, and anybody on this machine may sign in as a demo person.',
    'The first Ctrl-C stops everything in order, the second at once.',
  ],
  async run(context) {
    const options = readDevOptions(context)
    const { terminal, env } = context
    const startedMs = performance.now()
    const signals = listenForSignals(terminal, 'Leaving now.')
    const [{ startDev }, { Stages }, { introduce, stoppedText }] = await Promise.all([
      import('../../dev/run.ts'),
      import('../../dev/stages.ts'),
      import('../../dev/introduce.ts'),
    ])
    const stages = new Stages((says) => terminal.say(`  ${says}`))
    try {
      terminal.say('Hermod is starting …')
      const starting = startDev(stages, options, levelOf(env))
      const dev = await Promise.race([starting, signals.first.then(() => undefined)])
      // Told to stop while starting: the stage under way ends first.
      if (dev === undefined) starting.catch(() => {})
      else announce(context, introduce(dev, options, env, performance.now() - startedMs))
      await signals.first
    } finally {
      const stoppingMs = performance.now()
      await stages.close()
      signals.end()
      terminal.say(stoppedText(performance.now() - stoppingMs))
    }
    return 0
  },
}

function levelOf(env: Context['env']) {
  const level = env.HERMOD_LOG_LEVEL
  const known = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
  return known.find((each) => each === level) ?? 'warn'
}

function announce({ terminal }: Context, { text, facts }: { text: string; facts: object }): void {
  if (terminal.json) terminal.document(facts)
  else terminal.data(text)
}
