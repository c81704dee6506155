/**
 * discard: an operator gives deliveries up, with a reason that stays on the row and in the audit.
 * Events held behind them go on.
 */
import type { Database } from '../database.ts'
import { checkDecision, type Decided, type Decision } from './audit.ts'
import type { OpenState } from './dead.ts'
import { actOn, type BulkOptions, type Which } from './retry.ts'

const DISCARDABLE: readonly OpenState[] = ['dead', 'unknown', 'retrying', 'pending']

export interface DiscardOptions extends Decision, BulkOptions {
  readonly reason: string
}

export interface DiscardResult extends Decided {
  readonly discarded: number
  readonly matching: number
  readonly dryRun: boolean
}

export async function discard(
  db: Database,
  subscription: string,
  which: Which,
  options: DiscardOptions,
): Promise<DiscardResult> {
  const by = checkDecision(options, true)
  const act = { action: 'discard' as const, allowed: DISCARDABLE, by, which, options, force: false }
  const { done, matching, dryRun, requestId, repeated } = await actOn(db, subscription, act)
  return { discarded: done, matching, dryRun, requestId, repeated }
}
