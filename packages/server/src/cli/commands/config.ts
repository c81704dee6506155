/** `hermod config show|check`: what is in effect, where it came from, and what is wrong with it. */
import { type Command, type Context, didYouMean, usage } from 'hermod/cli'
import type { ConfigReading } from '../../read-config.ts'
import { configOptions, sourcesOf } from '../config-options.ts'

const verbs = ['show', 'check']

export const command: Command = {
  name: 'config',
  summary: 'show the settings of the server with their origins, or check them',
  usage: 'hermod config show | check [--config FILE]',
  examples: ['hermod config show', 'hermod config check', 'hermod config show --json'],
  options: configOptions,
  notes: ['Secrets are masked. Exits 1 when a setting is missing or wrong; all are named at once.'],
  async run(context) {
    const [verb = 'show', ...rest] = context.args
    if (!verbs.includes(verb) || rest.length > 0) {
      throw usage(`config has no ${verb}${didYouMean(verb, verbs)}`, 'Run hermod config --help.')
    }
    const { inspectConfig, refusal } = await import('../../read-config.ts')
    const found = inspectConfig(sourcesOf(context))
    if (verb === 'show') show(context, found)
    if (found.problems.length > 0) throw refusal(found.problems)
    if (verb === 'check') checked(context, found)
    return 0
  },
}

function show({ terminal }: Context, { entries }: ConfigReading): void {
  if (terminal.json) {
    terminal.document({
      settings: entries.map(({ shown, ...rest }) => ({ ...rest, value: shown })),
    })
    return
  }
  const rows = entries.map(({ key, shown, origin, variable }) => [key, shown, origin, variable])
  terminal.table(['setting', 'value', 'from', 'variable'], rows)
}

function checked({ terminal }: Context, { entries }: ConfigReading): void {
  if (terminal.json) terminal.document({ ok: true, settings: entries.length })
  else terminal.data(`All ${entries.length} settings are complete.`)
}
