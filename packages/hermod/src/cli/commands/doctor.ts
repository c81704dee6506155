/** `hermod doctor`: checks everything without starting anything. */
import type { Database } from '../../database.ts'
import { type Command, type Context, flagOf, usage } from '../command.ts'
import { withDatabase } from '../connect.ts'

/** One named check: what was looked at, how it is, what to do. */
interface Check {
  readonly name: string
  readonly state: string
  readonly says: string
  readonly fix?: string | null
}

interface Doctor {
  doctor(db: Database, options: { full: boolean }): Promise<{ readonly checks: readonly Check[] }>
}

export const command: Command = {
  name: 'doctor',
  summary: 'check the database, the log and the subscriptions, and say what to fix',
  usage: 'hermod doctor [--full]',
  examples: ['hermod doctor', 'hermod doctor --full   # audit the whole log, not only what is new'],
  options: {
    full: { type: 'boolean', says: 'look at every event, not only those since the last audit' },
  },
  notes: ['Exits 0 when everything is well, 1 when something should be fixed.'],
  run: (context) =>
    withDatabase(context, async (db) => {
      const { doctor } = await load()
      return print(context, await doctor(db, { full: flagOf(context, 'full') }))
    }),
}

async function load(): Promise<Doctor> {
  const file: string = '../../desk/doctor.ts'
  try {
    return (await import(file)) as Doctor
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw usage('doctor is not part of this build', 'Use hermod status.')
  }
}

function print({ terminal }: Context, found: { readonly checks: readonly Check[] }): number {
  const bad = found.checks.filter(({ state }) => state !== 'ok')
  if (terminal.json) terminal.document(found)
  else {
    terminal.table(
      ['check', 'state', 'says'],
      found.checks.map(({ name, state, says }) => [name, state, says]),
    )
    for (const { name, fix } of bad) if (fix) terminal.data(`${name}: ${fix}`)
  }
  terminal.say(bad.length === 0 ? 'All is well.' : `${bad.length} to look at.`)
  return bad.length === 0 ? 0 : 1
}
