/** `hermod serve`: the HTTP server. The first SIGTERM answers what is in flight, the second leaves. */
import { type Command, type Context, listenForSignals } from 'hermod/cli'
import { configOptions, sourcesOf } from '../config-options.ts'

export const command: Command = {
  name: 'serve',
  summary: 'run the HTTP server',
  usage: 'hermod serve [--config FILE] [--host ADDRESS] [--port N]',
  examples: ['hermod serve', 'hermod serve --host 0.0.0.0 --port 8080', 'hermod serve --port 0'],
  options: configOptions,
  notes: [
    'Settings come from flags, then the environment, .env, hermod.toml and defaults; hermod config show prints them.',
    'It delivers nothing by itself: run hermod work beside it. Run hermod migrate before.',
  ],
  async run(context) {
    const leaving = 'Leaving now; requests in flight are cut off.'
    const signals = listenForSignals(context.terminal, leaving)
    try {
      return await serve(context, signals.first)
    } finally {
      signals.end()
    }
  },
}

async function serve(context: Context, stopped: Promise<NodeJS.Signals>): Promise<number> {
  const [{ inspectConfig, refusal }, { startServer }, { createLog }] = await Promise.all([
    import('../../read-config.ts'),
    import('../../serve.ts'),
    import('../../log.ts'),
  ])
  const { config, entries, problems } = inspectConfig(sourcesOf(context))
  if (config === undefined) throw refusal(problems)
  const log = createLog(config.logLevel, { readable: process.stdout.isTTY })
  for (const { key, shown, origin } of entries) {
    log.debug({ code: 'config', key, value: shown, origin }, 'in effect')
  }
  const server = await startServer(config, { log })
  log.info({ code: 'server.started', url: server.url, pid: process.pid }, 'listening')
  if (config.issuers.length === 0) {
    log.warn({ code: 'issuers.none' }, 'no issuer is configured: only API tokens are accepted')
  }
  const signal = await stopped
  const startedMs = performance.now()
  await server.stop()
  const durationMs = Math.round(performance.now() - startedMs)
  log.info({ code: 'server.stopped', signal, durationMs }, 'stopped')
  return signal === 'SIGINT' ? 130 : 0
}
