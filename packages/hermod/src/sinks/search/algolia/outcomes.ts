/** What a refusal or a failure of Algolia means for the events that met it. */
import { HermodError } from '../../../errors.ts'
import { misconfigured, type Outcome, outcomeOfError, outcomeOfStatus } from '../../sink.ts'
import { AlgoliaFailure } from './api.ts'

const keyNeeds =
  'the key needs search, browse, addObject, deleteObject, deleteIndex, settings, editSettings and listIndexes'

export function outcomeOfAlgoliaError(error: unknown, items: number): Outcome {
  if (!(error instanceof AlgoliaFailure)) return outcomeOfError(error, { items })
  const { status, message, details } = error
  if (status === 401 || status === 402 || status === 403) return refused(status, message)
  return outcomeOfStatus(status, {
    items,
    retryAfter: details.retryAfter,
    code: `ALGOLIA_${status}`,
    message: `Algolia: ${message}`,
  })
}

/** Nothing is lost: the backlog waits in the log. */
function refused(status: number, said: string): Outcome {
  const quota = /quota|plan|billing|blocked/i.test(said)
  const advice = quota
    ? 'choose a larger plan or delete records; what waits is written then'
    : `check the application id and the key; ${keyNeeds}`
  const code = quota ? 'ALGOLIA_QUOTA' : 'ALGOLIA_REFUSED'
  return misconfigured({ code, status, message: `Algolia: ${said}. To do: ${advice}` })
}

/** For errors thrown to callers of reads and changes: the same words, with a code. */
export function setupError(error: unknown, what: string): unknown {
  if (!(error instanceof AlgoliaFailure) || error.status >= 429) return error
  const { message = error.message } = outcomeOfAlgoliaError(error, 1)
  return new HermodError('HMD_SEARCH_SETUP', `${what}: ${message}`, { cause: error })
}
