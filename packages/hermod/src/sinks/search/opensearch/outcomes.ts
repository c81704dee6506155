/** What an answer of OpenSearch means for the documents that met it. Decided by status, not by name. */
import {
  delivered,
  type Outcome,
  type OutcomeDetails,
  outcomeOfError,
  outcomeOfStatus,
  rejected,
  superseded,
  unavailable,
} from '../../sink.ts'
import { type BulkItem, discreet, OpenSearchError } from './api.ts'

/** Read-only, or out of disk: it passes, and dead letters would be wrong. */
const BLOCKED = 'cluster_block_exception'

/** The whole call failed. */
export function outcomeOfFailure(error: unknown, items: number): Outcome {
  if (!(error instanceof OpenSearchError)) return outcomeOfError(error, { items })
  const { status, type, message, afterMs } = error
  const details = { status, code: type, message }
  if (type === BLOCKED) return unavailable(blocked(details))
  const outcome = outcomeOfStatus(status, { items, code: type, message })
  return afterMs === undefined ? outcome : Object.freeze({ ...outcome, afterMs })
}

/** One action of a bulk. */
export function outcomeOfItem(action: 'index' | 'delete', { status, error }: BulkItem): Outcome {
  if (status >= 200 && status < 300) return delivered()
  if (status === 404 && action === 'delete' && error === undefined) return delivered()
  if (status === 409) return superseded()
  const type = error?.type ?? 'error'
  const reason = discreet(error?.reason ?? '')
  const details = { status, code: type, message: `OpenSearch says ${type}: ${reason}` }
  if (type === BLOCKED) return unavailable(blocked(details))
  if (status === 400) return rejected(details)
  return outcomeOfStatus(status, details)
}

function blocked(details: OutcomeDetails): OutcomeDetails {
  const hint = 'the index is read-only, as OpenSearch makes it when a disk is nearly full'
  return { ...details, message: `${hint}: free space or remove the block` }
}
