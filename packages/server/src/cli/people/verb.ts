/** A verb of `hermod people`: reads its arguments before anything is opened, then runs. */
import { type Context, usage } from 'hermod/cli'
import type { Platform } from '../../platform.ts'

export interface Given {
  readonly context: Context
  readonly args: readonly string[]
  readonly name: string
}

export interface Verb {
  /** Refuses what is wrong: exit 2. */
  read(context: Context, args: readonly string[]): readonly string[]
  run(platform: Platform, given: Given): Promise<number>
}

/** So many arguments and no more: `takes('ID', 'IDENTITY')`; those that end in `?` may be left out. */
export function takes(...names: readonly string[]): Verb['read'] {
  return (_context, args) => {
    const needed = names.filter((name) => !name.endsWith('?')).length
    if (args.length >= needed && args.length <= names.length) {
      for (const [at, name] of names.entries()) assertId(name, args[at])
      return args
    }
    const wanted = names.map((name) => name.replace(/^(.*)\?$/, '[$1]')).join(' ')
    throw usage(`this takes ${wanted || 'no arguments'}`, 'Run hermod people --help.')
  }
}

const ids = new Set(['ID', 'IDENTITY', 'FROM', 'INTO', 'MERGE'])

function assertId(name: string, value: string | undefined): void {
  if (!ids.has(name) || (value !== undefined && /^[1-9]\d{0,17}$/.test(value))) return
  throw usage(`${name} must be a number (got ${JSON.stringify(value)})`)
}

export function argument({ args }: Given, at: number): string {
  return args[at] ?? ''
}
