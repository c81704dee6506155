/** A call to the engine as a whole. While the engine is in trouble the journey waits and says why. */
import { HermodError } from '../errors.ts'
import { outcomeOfSqlError } from '../sinks/search/postgres/outcomes.ts'
import type { DeclaredIndex } from './declared-index.ts'
import type { Run } from './runner.ts'

const waitMsMax = 15_000
const attemptsMax = 5

/** Coded errors are final; any other error is retried. */
export async function engineCall<T>(
  run: Run,
  index: DeclaredIndex,
  work: (call: { signal: AbortSignal }) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    run.look()
    try {
      const result = await work({ signal: run.signal })
      if (run.progress.waiting != null) await run.note({ waiting: null })
      return result
    } catch (error) {
      run.look()
      if (error instanceof HermodError) throw error
      const { outcome, message, afterMs = 0 } = outcomeOfSqlError(error, 1)
      const trouble = outcome === 'unavailable' || outcome === 'misconfigured'
      if (!trouble && attempt >= attemptsMax) throw error
      if (trouble) await run.note({ waiting: `${index.engine.name} is ${outcome}: ${message ?? ''}` })
      await run.pause(Math.max(afterMs, Math.min(waitMsMax, 250 * 2 ** Math.min(attempt, 6))))
    }
  }
}
