/** `hermod rebase`: once after a restore, a move or an upgrade of the cluster. */
import { rebase } from '../../desk/rebase.ts'
import { type Command, flagOf, numberOf, textOf } from '../command.ts'
import { withDatabase } from '../connect.ts'

export const command: Command = {
  name: 'rebase',
  summary: 'go on after a restore: number what the log lacks, lose nothing',
  usage: 'hermod rebase [--rolled-back] [--accept-missing] [--reason TEXT] [--yes]',
  examples: [
    'hermod rebase                # after a dump and restore, a move, pg_upgrade',
    'hermod rebase --rolled-back  # after storage went back in time, same cluster',
  ],
  options: {
    'rolled-back': {
      type: 'boolean',
      says: 'only move positions and fences past everything the outside has seen',
    },
    'accept-missing': {
      type: 'boolean',
      says: 'go on although undelivered events are gone; they become dead letters',
    },
    'wait-ms': {
      type: 'string',
      value: 'N',
      says: 'how long to wait for transactions that write events; 10000',
    },
    reason: { type: 'string', value: 'TEXT', says: 'kept in the audit' },
    actor: {
      type: 'string',
      value: 'NAME',
      says: 'who decides; the user of this shell when left out',
    },
  },
  notes: ['Stop the workers first. While it runs, nothing can be emitted.'],
  run: (context) =>
    withDatabase(context, async (db) => {
      const { terminal } = context
      const rolledBack = flagOf(context, 'rolled-back')
      const what = rolledBack ? 'Move all positions and fences up' : 'Number what the log lacks'
      if (!(await terminal.confirm(`${what}, with emitting stopped meanwhile?`))) return 1
      const waitMs = numberOf(context, 'wait-ms')
      const reason = textOf(context, 'reason')
      const result = await rebase(db, {
        rolledBack,
        acceptMissing: flagOf(context, 'accept-missing'),
        actor: actorOf(context),
        ...(waitMs !== undefined && { waitMs }),
        ...(reason !== undefined && { reason }),
      })
      if (terminal.json) terminal.document(result)
      else for (const [name, value] of Object.entries(result)) terminal.data(`${name}\t${value}`)
      terminal.say(`Done: ${result.numbered} events numbered. Start the workers again.`)
      return 0
    }),
}

/** Who made the decision: --actor, else the user of the shell. */
export function actorOf(context: Parameters<Command['run']>[0]): string {
  const { USER, LOGNAME, USERNAME } = context.env
  return textOf(context, 'actor') ?? `cli:${USER ?? LOGNAME ?? USERNAME ?? 'operator'}`
}
