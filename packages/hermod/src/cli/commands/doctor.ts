/** `hermod doctor`: checks everything without starting anything. */
import { type DoctorResult, doctor } from '../../desk/doctor.ts'
import { type Command, type Context, flagOf, numberOf } from '../command.ts'
import { withDatabase } from '../connect.ts'
import { serverPart } from '../server-part.ts'

export const command: Command = {
  name: 'doctor',
  summary: 'check the database, the log and the subscriptions, and say what to fix',
  usage: 'hermod doctor [--full] [--event-days N]',
  examples: ['hermod doctor', 'hermod doctor --full   # audit the whole log, not only what is new'],
  options: {
    full: { type: 'boolean', says: 'look at every event, not only those since the last audit' },
    'event-days': {
      type: 'string',
      value: 'N',
      says: 'how long your workers keep events; the server’s setting, or 7, when left out',
    },
  },
  notes: ['Exits 0 when nothing failed (there may be warnings), 1 when something must be fixed.'],
  async run(context) {
    const eventDays = numberOf(context, 'event-days') ?? (await (await serverPart())?.eventDays?.(context))
    const options = { full: flagOf(context, 'full'), ...(eventDays !== undefined && { eventDays }) }
    return withDatabase(context, async (db) => print(context, await doctor(db, options)))
  },
}

function print({ terminal }: Context, found: DoctorResult): number {
  const open = found.checks.filter(({ ok }) => !ok)
  if (terminal.json) terminal.document(found)
  else {
    terminal.table(
      ['check', 'level', 'says'],
      found.checks.map(({ name, level, says }) => [name, level, says]),
    )
    for (const { name, fix } of open) if (fix) terminal.data(`\n${name}: ${fix}`)
  }
  terminal.say(open.length === 0 ? 'All is well.' : `${open.length} to look at.`)
  return found.ok ? 0 : 1
}
