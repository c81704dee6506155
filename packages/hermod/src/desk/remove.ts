/**
 * remove: a subscription goes for good, with its lanes, cursors and deliveries. What was not delivered is
 * counted in the audit row; without a confirmation it is refused.
 */
import { type Database, type PoolClient, select } from '../database.ts'
import { HermodError } from '../errors.ts'
import { checkDecision, type Decided, type Decision, decide, type Made, subscriptionNamed } from './audit.ts'

const COUNT = `select l.past::text, l.estimated::text,
    (select count(*) from outbox.delivery d where d.subscription = $1
        and d.state in ('pending', 'retrying', 'sending', 'dead', 'unknown'))::text as rows
  from outbox.lag_of($1, 100000) l`

export interface RemoveOptions extends Decision {
  readonly reason: string
  /** The name again: events that were not delivered are discarded. */
  readonly confirm?: string | undefined
}

export interface RemoveResult extends Decided {
  readonly subscription: string
  /** Events discarded: behind the cursors, retrying, dead or unknown. */
  readonly discarded: number
  /** There were more than 100,000 of them: the rest is estimated. */
  readonly estimated: boolean
}

export async function remove(db: Database, subscription: string, options: RemoveOptions): Promise<RemoveResult> {
  const by = checkDecision(options, true)
  const lanes = Array.from({ length: 256 }, (_, lane) => lane)
  const command = { action: 'remove', subscription, lanes, by }
  return decide<RemoveResult>(db, command, (tx) => removeLocked(tx, subscription, options))
}

async function removeLocked(tx: PoolClient, subscription: string, options: RemoveOptions): Promise<Made> {
  await subscriptionNamed(tx, subscription)
  const [row] = await select(tx, COUNT, [subscription])
  const discarded = Number(row?.past) + Number(row?.rows)
  if (discarded > 0 && options.confirm !== subscription) {
    throw new HermodError('HMD_SUBSCRIPTION_UNDELIVERED', `${subscription} has ${discarded} undelivered events`, {
      field: 'confirm',
      details: { discarded },
    })
  }
  await select(tx, 'select outbox.remove($1)', [subscription])
  return { count: discarded, after: { subscription, discarded, estimated: row?.estimated === 'true' } }
}
