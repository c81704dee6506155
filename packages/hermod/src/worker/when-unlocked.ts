/** Waits for a lane whose row somebody else holds: asks now and then, so that no connection is kept waiting. */
import { unlocked } from '../flow/lease.ts'
import type { LeasedLane } from './lane.ts'
import { pause } from './set-aside.ts'
import type { Station } from './station.ts'

const askEveryMs = 250

/** Does the work once the row is free, or when the lease ends or the worker stops: then it says what is wrong. */
export async function whenUnlocked<T>(station: Station, lane: LeasedLane, work: () => Promise<T>): Promise<T> {
  const { db, subscription, abort } = station
  while (!abort.aborted && performance.now() < lane.untilMs) {
    await pause(askEveryMs, abort)
    if ((await unlocked(db, subscription.name, [lane.lane])).has(lane.lane)) break
  }
  return work()
}
