/** From the arguments to an exit code: finds the command, reads its options, reports what failed. */
import { parseArgs } from 'node:util'
import { HermodError } from '../errors.ts'
import { didYouMean } from '../nearest.ts'
import { type Command, type CommandOption, commonOptions, type Options, usage } from './command.ts'
import { commandNames, loadCommand } from './commands.ts'
import { helpOf } from './help-text.ts'
import { endQuietlyOnClosedPipe, Terminal, toJson } from './terminal.ts'

export async function run(argv: readonly string[]): Promise<number> {
  endQuietlyOnClosedPipe()
  const json = argv.includes('--json')
  try {
    const [name, rest] = split(argv)
    const command = await loadCommand(name)
    if (command === undefined) throw await unknownCommand(name)
    return await execute(command, rest)
  } catch (error) {
    return report(error, json)
  }
}

/** `hermod --json status` means `hermod status --json`. */
function split(argv: readonly string[]): [name: string, rest: string[]] {
  if (argv.length === 0) return ['help', []]
  if (argv[0] === '--version' || argv[0] === '-v') return ['version', argv.slice(1)]
  const at = argv.findIndex((arg, index) => !arg.startsWith('-') && argv[index - 1] !== '--url')
  if (at === -1) return ['help', argv.filter((arg) => arg !== '--help' && arg !== '-h')]
  return [argv[at] as string, [...argv.slice(0, at), ...argv.slice(at + 1)]]
}

async function execute(command: Command, rest: readonly string[]): Promise<number> {
  const { values: given, positionals } = read(command, rest)
  // No option is declared as repeatable, so there are no lists among them.
  const values = given as Record<string, string | boolean | undefined>
  const flag = (name: string) => values[name] === true
  const color = !flag('no-color') && !process.env.NO_COLOR && process.stdout.isTTY === true
  const terminal = new Terminal({
    json: flag('json'),
    plain: flag('plain'),
    quiet: flag('quiet'),
    yes: flag('yes'),
    color,
    input: !flag('no-input'),
  })
  if (flag('help')) {
    terminal.data(helpOf(command))
    return 0
  }
  return command.run({ args: positionals, values, env: process.env, terminal })
}

function read(command: Command, rest: readonly string[]) {
  const known = { ...commonOptions, ...command.options }
  try {
    const args = [...rest]
    return parseArgs({ args, options: optionsOf(known), allowPositionals: true, strict: true })
  } catch (error) {
    throw wrongOption(error as Error & { code?: string }, command, known)
  }
}

function optionsOf(known: Readonly<Record<string, CommandOption>>): Options {
  const entries = Object.entries(known).map(([name, { type, short }]) => [name, { type, ...(short && { short }) }])
  return Object.fromEntries(entries)
}

function wrongOption(
  error: Error & { code?: string },
  { name }: Command,
  known: Readonly<Record<string, CommandOption>>,
): HermodError {
  const [, option] = /'(?:-\w, )?--?([\w-]+)/.exec(error.message) ?? []
  const fix = `Run hermod ${name} --help.`
  if (error.code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const meant = didYouMean(option ?? '', Object.keys(known)).replace('mean ', 'mean --')
    return usage(`${name} has no option --${option}${meant}`, fix)
  }
  return usage(error.message.split('. ')[0] ?? error.message, fix)
}

async function unknownCommand(name: string): Promise<HermodError> {
  const meant = didYouMean(name, await commandNames())
  return usage(`there is no command ${JSON.stringify(name.slice(0, 64))}${meant}`)
}

/** On stderr: what happened, what to do next. Wrong usage is 2, everything else 1. */
function report(error: unknown, json: boolean): number {
  const ours = error instanceof HermodError ? error : undefined
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown }
  const says = String(message || error)
  if (json) {
    const plain = { code: typeof code === 'string' ? code : 'UNEXPECTED', message: says }
    process.stderr.write(`${toJson({ error: ours?.toJSON() ?? plain })}\n`)
  } else {
    process.stderr.write(`hermod: ${says}\n${ours ? `  ${ours.fix} (${ours.code})\n` : ''}`)
  }
  return ours?.code === 'HMD_USAGE' ? 2 : 1
}
