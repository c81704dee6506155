/** `hermod backfill`: the first fill of an index from a database that was there before. */
import type { Command } from '../command.ts'
import { decisionOf, follow, journeyOptions, started, waitOptions, waits, withIndex } from '../journey-command.ts'

export const command: Command = {
  name: 'backfill',
  summary: 'fill a search index from its source, in place',
  usage: 'hermod backfill INDEX [--wait | --no-wait]',
  examples: ['hermod backfill documents', 'hermod backfill documents --no-wait'],
  options: { ...journeyOptions, ...waitOptions },
  notes: ['Adds and renews documents; it removes none. hermod verify --repair and hermod rebuild do.'],
  run: (context) =>
    withIndex(context, async (outbox, index) => {
      const { terminal } = context
      const journey = await outbox.backfill(index, decisionOf(context))
      if (!waits(context)) return started(context, journey)
      const { journey: ended, code } = await follow(context, outbox, journey, { here: false })
      if (terminal.json) terminal.document(ended)
      else if (code === 0) {
        terminal.data(`documents\t${ended.result?.documents}`)
        terminal.data(`rejected\t${ended.result?.rejected}`)
      }
      return code
    }),
}
