/** `hermod people merge` and `unmerge`: both ask first, with what they are about to change. */
import { type Context, flagOf, textOf, usage } from 'hermod/cli'
import { mergePeople, previewMerge, undoMerge } from '../../people/merge.ts'
import { transaction } from '../../platform.ts'
import { argument, takes, type Verb } from './verb.ts'
import { actorOfShell } from './with-platform.ts'

export const merge: Verb = {
  read(context, args) {
    if (!flagOf(context, 'dry-run')) reasonOf(context)
    return takes('FROM', 'INTO')(context, args)
  },
  async run(platform, given) {
    const { terminal } = given.context
    const pair = { from: argument(given, 0), into: argument(given, 1) }
    const { from, into, counts } = await previewMerge(platform.pool, pair)
    const dryRun = flagOf(given.context, 'dry-run')
    if (!terminal.json) {
      const rows = Object.entries(counts)
      terminal.table(['what refers to the merged person', 'rows'], rows)
    }
    if (dryRun) {
      if (terminal.json) terminal.document({ dryRun, from, into, counts })
      return 0
    }
    const names = `${from.id} ${from.displayName} into ${into.id} ${into.displayName}`
    if (!(await terminal.confirm(`Merge ${names}?`))) return 1
    const reason = reasonOf(given.context)
    const actor = actorOfShell(given, platform.clock())
    const done = await transaction(platform, (tx) => mergePeople(platform, tx, actor, { ...pair, reason }))
    if (terminal.json) terminal.document({ dryRun, ...done })
    else terminal.data(`Merge ${done.mergeId} is done; undo: hermod people unmerge ${done.mergeId}`)
    return 0
  },
}

export const unmerge: Verb = {
  read(context, args) {
    reasonOf(context)
    return takes('MERGE')(context, args)
  },
  async run(platform, given) {
    const { terminal } = given.context
    const mergeId = argument(given, 0)
    if (!(await terminal.confirm(`Undo merge ${mergeId}?`))) return 1
    const actor = actorOfShell(given, platform.clock())
    const reason = reasonOf(given.context)
    const done = await transaction(platform, (tx) => undoMerge(platform, tx, actor, { mergeId, reason }))
    if (terminal.json) terminal.document(done)
    else terminal.data(`Person ${done.from} is a person of its own again.`)
    return 0
  },
}

function reasonOf(context: Context): string {
  const reason = textOf(context, 'reason')?.trim()
  if (reason !== undefined && reason !== '' && reason.length <= 1_000) return reason
  throw usage('--reason is needed: why, in at most 1000 characters')
}
