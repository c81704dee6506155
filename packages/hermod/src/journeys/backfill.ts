/**
 * backfill: fills the index that is there from its source, in place: the first fill of an existing
 * database, or whatever was missed. It never removes; `verify --repair` and `rebuild` do.
 */
import { type Compared, Comparison } from './compare.ts'
import type { DeclaredIndex } from './declared-index.ts'
import { engineCall } from './engine-call.ts'
import { LoadRows } from './load-rows.ts'
import { untilPassed } from './passing.ts'
import { numberedHead } from './position.ts'
import type { RebuildContext } from './rebuild.ts'
import type { Run } from './runner.ts'
import { holdLog, sendAgain } from './send-again.ts'
import { lookingOf } from './verify.ts'

export interface BackfillResult {
  readonly documents: number
  readonly rejected: number
  readonly rejections: unknown
  readonly verification: Compared
}

export async function backfill(run: Run, index: DeclaredIndex, context: RebuildContext): Promise<BackfillResult> {
  const { name, engine, definition, subscription } = index
  if (run.progress.from == null) {
    await engineCall(run, index, (call) => engine.ensureIndex(name, definition, call))
    const total = await index.source.count(run.db)
    const from = await numberedHead(run.db, run)
    await holdLog(run, from)
    await run.note({ from: String(from), done: 0, total }, 'load')
  }
  await new LoadRows(run, index, undefined).run()
  if (run.progress.caughtUp !== true) {
    await run.note({}, 'catch-up')
    // Into generations that everybody knows: only where older versions can win is there something to heal.
    await untilPassed(run, subscription)
    await sendAgain(run, index, context, run.progress.from, run.progress.from)
    await run.note({ caughtUp: true })
  }
  await run.note({}, 'verify')
  const looking = lookingOf(run, index, { fast: true })
  const verification = await Comparison.with({ ...looking, tell: async () => run.look() }, (comparison) =>
    comparison.all(),
  )
  const { done, rejected, rejections } = run.progress
  return {
    documents: done ?? 0,
    rejected: Number(rejected ?? 0),
    rejections: rejections ?? [],
    verification,
  }
}
