/** `hermod people import`: from a legacy table of users, with a bar where somebody looks. */
import { type Context, flagOf, progressBar, textOf } from 'hermod/cli'
import { type ImportReport, importUsers } from '../../people/import-users.ts'
import { takes, type Verb } from './verb.ts'
import { actorOfShell } from './with-platform.ts'

export const importPeople: Verb = {
  read: takes(),
  async run(platform, given) {
    const { context } = given
    const wanted = !context.terminal.json && !flagOf(context, 'quiet')
    const bar = progressBar('people', { wanted })
    try {
      const report = await importUsers(platform, actorOfShell(given, platform.clock()), {
        table: textOf(context, 'table'),
        documents: textOf(context, 'documents'),
        dryRun: flagOf(context, 'dry-run'),
        onProgress: bar.show,
      })
      bar.end()
      tell(context, report)
      return report.refused > 0 ? 1 : 0
    } finally {
      bar.end()
    }
  },
}

function tell({ terminal }: Context, report: ImportReport): void {
  if (terminal.json) {
    terminal.document(report)
    return
  }
  const { rows, imported, unchanged, refused, problems, documents, dryRun } = report
  terminal.table(dryRun ? ['would be', 'rows'] : ['what', 'rows'], [
    ['users read', rows],
    ['people imported', imported],
    ['imported before', unchanged],
    ['refused', refused],
    ['legacy documents: last modifier set', documents.modifiersSet],
    ['legacy documents: workspace provider set', documents.providersSet],
    ['documents here: last modifier set', documents.ownModifiersSet],
  ])
  for (const { row, value, says } of problems.slice(0, 20)) {
    terminal.say(`  user ${row} (${JSON.stringify(value)}): ${says}`)
  }
  if (refused > 20) terminal.say(`  and ${refused - 20} more; --json lists the first 1000`)
  for (const why of documents.skipped) terminal.say(`  ${why}`)
}
