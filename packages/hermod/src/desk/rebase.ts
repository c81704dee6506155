/**
 * rebase: after a restore, a move or `pg_upgrade`, numbers exactly the events the log lacks and goes
 * on under this cluster's transaction ids. One transaction, recorded once per request id.
 */
import { randomUUID } from 'node:crypto'
import { type Database, select, transaction } from '../database.ts'
import { HermodError } from '../errors.ts'

const REBASE = `select outbox.rebase($1, $2, $3, $4, $5)::text as answer`
const ROLLED_BACK = `select outbox.rolled_back($1, $2, $3)::text as answer`

export interface RebaseOptions {
  /** An older copy of the storage under the same identity: only positions and fences move up. */
  readonly rolledBack?: boolean
  /** Continue although undelivered events are lost; they become dead letters. */
  readonly acceptMissing?: boolean
  /** How long to wait for transactions that are writing events; 10,000 when left out. */
  readonly waitMs?: number
  readonly actor?: string
  readonly reason?: string
  /** The same id again does nothing and gives the first answer. */
  readonly requestId?: string
}

export interface RebaseResult {
  /** Events that were in no log and now have a position. */
  readonly numbered: number
  /** Events with a `notBefore` in the future: scheduled until they are due. */
  readonly filed: number
  /** Events whose part of the log was removed by retention: they stay as they are. */
  readonly retired: number
  /** Positions of the log whose event is gone, accepted as lost. */
  readonly missing: number
  readonly position: bigint
  readonly epoch: number
  /** Ids up to here are never looked at by transaction id again. */
  readonly fencedId: bigint
  /** This request was carried out before. */
  readonly repeated: boolean
}

export async function rebase(db: Database, options: RebaseOptions = {}): Promise<RebaseResult> {
  const { actor = 'operator', reason = null, requestId = randomUUID() } = options
  const waitMs = checkedWait(options.waitMs)
  const [row] = await transaction(db, async (client) => {
    await client.query(`set local statement_timeout = 0`)
    return options.rolledBack
      ? select(client, ROLLED_BACK, [requestId, actor, reason])
      : select(client, REBASE, [requestId, actor, reason, waitMs, options.acceptMissing ?? false])
  })
  const answer = JSON.parse(row?.answer as string)
  return {
    numbered: answer.numbered,
    filed: answer.filed,
    retired: answer.retired,
    missing: answer.missing,
    position: BigInt(answer.position),
    epoch: answer.epoch,
    fencedId: BigInt(answer.fencedId),
    repeated: answer.repeated ?? false,
  }
}

function checkedWait(waitMs = 10_000): number {
  if (Number.isInteger(waitMs) && waitMs >= 1 && waitMs <= 3_600_000) return waitMs
  throw new HermodError('HMD_OPTION_INVALID', 'waitMs must be 1 to 3600000', { field: 'waitMs' })
}
