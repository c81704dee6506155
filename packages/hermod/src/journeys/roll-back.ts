/**
 * Rolling back: the former generation is live again. It has received every write since,
 * so nothing is missing. The other one is kept as long as any former generation.
 */
import { HermodError } from '../errors.ts'
import type { DeclaredIndex } from './declared-index.ts'
import { engineCall } from './engine-call.ts'
import { untilPassed } from './passing.ts'
import { floorOf } from './position.ts'
import type { RebuildContext, RebuildPlan, RebuildResult } from './rebuild.ts'
import type { Run } from './runner.ts'
import { holdLog, sendAgain } from './send-again.ts'

export async function rollBack(run: Run, index: DeclaredIndex, context: RebuildContext): Promise<RebuildResult> {
  const { name, engine, subscription } = index
  const list = () => engineCall(run, index, (call) => engine.generations(name, call))
  if (run.progress.former == null) {
    const generations = await list()
    const live = generations.find(({ state }) => state === 'live')
    if (live === undefined || !generations.some(({ state }) => state === 'retired')) {
      const says = `index ${name} has no earlier generation to go back to`
      throw new HermodError('HMD_SEARCH_GENERATION', says)
    }
    const floor = await floorOf(run.db, subscription)
    await holdLog(run, floor)
    await run.note({ former: live.id, swapFrom: String(floor) }, 'swap')
  }
  const { former, swapFrom } = run.progress
  const isBack = (await list()).some(({ id, state }) => state === 'live' && id !== former)
  if (!isBack) await engineCall(run, index, (call) => engine.rollBackGeneration(name, call))
  await run.note({}, 'settle')
  if (engine.generationsMs) await run.pause(engine.generationsMs)
  const passed = await untilPassed(run, subscription)
  await sendAgain(run, index, context, swapFrom, passed)
  await run.note({}, 'keep')
  const live = (await list()).find(({ state }) => state === 'live')
  const { keepMs = index.keepMs } = run.journey.plan as RebuildPlan
  return {
    generation: live?.id ?? '',
    former: String(former),
    documents: 0,
    rejected: 0,
    keepUntil: new Date(Date.now() + keepMs).toISOString(),
    rejections: [],
  }
}
