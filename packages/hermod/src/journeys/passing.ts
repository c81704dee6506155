/** Waits until a subscription has passed a position, and says why it does not move. */
import { HermodError } from '../errors.ts'
import { hasPassed, numberedHead } from './position.ts'
import type { Run } from './runner.ts'

const firstMs = 20
const everyMs = 250
const tellEveryMs = 1_000

export interface PassingOptions {
  /** Gives up after this long without progress; waits for ever when left out. */
  readonly patienceMs?: number | undefined
}

/** Everything that was committed before the call has been delivered, or has a row that says why not. */
export async function untilPassed(
  run: Run,
  subscription: string,
  { patienceMs }: PassingOptions = {},
): Promise<bigint> {
  const position = await numberedHead(run.db, run)
  const startedMs = performance.now()
  let toldMs = startedMs
  for (let waitMs = firstMs; ; waitMs = Math.min(waitMs * 2, everyMs)) {
    const { passed, why } = await hasPassed(run.db, subscription, position)
    if (passed) break
    const nowMs = performance.now()
    if (patienceMs !== undefined && nowMs - startedMs > patienceMs) {
      throw behind(subscription, position, why)
    }
    if (nowMs - toldMs > tellEveryMs) {
      toldMs = nowMs
      await run.note({ waiting: why ?? `${subscription} has not reached position ${position} yet` })
    }
    await run.pause(waitMs)
  }
  if (run.progress.waiting != null) await run.note({ waiting: null })
  return position
}

function behind(subscription: string, position: bigint, why: string | undefined): HermodError {
  const says = `${subscription} has not reached position ${position}, so nobody can tell drift from what is on its way${why === undefined ? '' : `: ${why}`}`
  return new HermodError('HMD_VERIFY_BEHIND', says, { details: { position: String(position) } })
}
