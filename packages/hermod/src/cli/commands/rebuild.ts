/** `hermod rebuild`: an index filled anew beside the one that is searched, then swapped in. */
import type { RebuildResult } from '../../journeys/rebuild.ts'
import type { Outbox } from '../../outbox.ts'
import { type Command, type Context, flagOf, textOf, usage } from '../command.ts'
import { durationMs } from '../follow-journey.ts'
import { decisionOf, follow, journeyOptions, started, waitOptions, waits, withIndex } from '../journey-command.ts'

export const command: Command = {
  name: 'rebuild',
  summary: 'fill a search index anew from its source, without a gap, and swap it in',
  usage: 'hermod rebuild INDEX [--rollback] [--keep 1h] [--dry-run] [--wait | --no-wait]',
  examples: [
    'hermod rebuild documents --dry-run',
    'hermod rebuild documents --wait',
    'hermod rebuild documents --keep 1d --no-wait',
    'hermod rebuild documents --rollback',
  ],
  options: {
    ...journeyOptions,
    rollback: { type: 'boolean', says: 'back to the generation that was live before' },
    keep: {
      type: 'string',
      value: 'TIME',
      says: 'how long the former generation is kept: 90s, 30m, 1h, 2d; as declared (1h) when left out',
    },
    'dry-run': { type: 'boolean', says: 'only say what would be done' },
    ...waitOptions,
  },
  notes: [
    'INDEX is one that the config module declares with outbox.index(), or one of the platform’s: documents, drafts.',
    'Searches see the former generation, complete, until the moment of the swap. See docs/operations/reindex.md.',
  ],
  run: (context) =>
    withIndex(context, (outbox, index) =>
      flagOf(context, 'dry-run') ? preview(context, outbox, index) : start(context, outbox, index),
    ),
}

async function preview(context: Context, outbox: Outbox, index: string): Promise<number> {
  const { terminal } = context
  const found = await outbox.previewRebuild(index)
  if (terminal.json) {
    terminal.document(found)
    return 0
  }
  const { engine, source, subscription, rows, generations } = found
  for (const [name, value] of Object.entries({ index, engine, source, subscription, rows })) {
    terminal.data(`${name}\t${value}`)
  }
  for (const { id, state, createdAt } of generations) {
    terminal.data(`generation\t${id} ${state} since ${createdAt.toISOString()}`)
  }
  terminal.say('Nothing was changed.')
  return 0
}

async function start(context: Context, outbox: Outbox, index: string): Promise<number> {
  const { terminal } = context
  const rollback = flagOf(context, 'rollback')
  const journey = await outbox.rebuild(index, { rollback, ...keepOf(context) }, decisionOf(context))
  if (!rollback && !waits(context)) return started(context, journey)
  const { journey: ended, code } = await follow(context, outbox, journey, { here: rollback })
  if (terminal.json) terminal.document(ended)
  else if (code === 0) told(context, index, ended.result as unknown as RebuildResult)
  return code
}

function keepOf(context: Context): { keepMs?: number } {
  const given = textOf(context, 'keep')
  if (given === undefined) return {}
  const keepMs = durationMs(given)
  if (keepMs === undefined) throw usage(`--keep must be a time like 30m, 1h or 2d (got ${given})`)
  return { keepMs }
}

function told({ terminal }: Context, index: string, result: RebuildResult): void {
  const { generation, former, keepUntil, documents, rejected } = result
  terminal.data(`generation\t${generation}`)
  terminal.data(`former\t${former ?? '–'}`)
  terminal.data(`documents\t${documents}`)
  terminal.data(`rejected\t${rejected}`)
  if (rejected > 0) terminal.say('hermod journeys show lists rejected rows and why.')
  if (keepUntil !== null) {
    terminal.say(`Live. Until ${keepUntil}: hermod rebuild ${index} --rollback goes back.`)
  }
}
