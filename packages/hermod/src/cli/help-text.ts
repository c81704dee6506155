/** Help: examples first, then usage, options and notes. */
import { type Command, type CommandOption, commonOptions } from './command.ts'

export function helpOf(command: Command): string {
  const parts = [
    command.examples.map((example) => `  $ ${example}`).join('\n'),
    `${command.summary}\n\nUsage: ${command.usage}`,
    optionsText('Options', command.options ?? {}),
    optionsText('On every command', commonOptions),
    (command.notes ?? []).join('\n'),
  ]
  return parts.filter((part) => part !== '').join('\n\n')
}

export function overview(commands: readonly Command[], version: string): string {
  const width = Math.max(...commands.map(({ name }) => name.length))
  const list = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`)
  return [
    '  $ hermod migrate          install or update the schema\n  $ hermod status           is something broken that I need to act on?\n  $ hermod dead groups      what failed for good, and why',
    `hermod ${version}\n\nUsage: hermod COMMAND [options]`,
    list.join('\n'),
    'hermod help COMMAND says more. The database is DATABASE_URL, or --url.',
  ].join('\n\n')
}

function optionsText(title: string, options: Readonly<Record<string, CommandOption>>): string {
  const lines = Object.entries(options).map(([name, option]) => {
    const short = option.short === undefined ? '' : `-${option.short}, `
    const value = option.value === undefined ? '' : ` ${option.value}`
    return [`  ${short}--${name}${value}`, option.says] as const
  })
  if (lines.length === 0) return ''
  const width = Math.max(...lines.map(([left]) => left.length))
  return `${title}:\n${lines.map(([left, says]) => `${left.padEnd(width)}  ${says}`).join('\n')}`
}
