/** What the outcomes of a call say about its destination. Live batches and replays share the breaker. */
import type { Result } from '../flow/result.ts'
import type { Breaker } from './breaker.ts'
import { deliveredIn, troubleIn } from './round.ts'
import type { Station } from './station.ts'

/** `tried`: something was sent. False: the destination is in trouble. */
export async function judge(station: Station, breaker: Breaker, result: Result, tried: boolean): Promise<boolean> {
  const trouble = troubleIn(result)
  station.passes += deliveredIn(result)
  if (trouble !== undefined) await breaker.troubled(trouble)
  else if (tried) await breaker.passed()
  else await breaker.unused()
  return trouble === undefined
}
