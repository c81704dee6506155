/** What an answer of Typesense, or none, means for the documents that were sent. */
import {
  misconfigured,
  type Outcome,
  type OutcomeDetails,
  outcomeOfError,
  outcomeOfStatus,
  rejected,
  split,
  unavailable,
} from '../../sink.ts'
import { BUSY, TypesenseError } from './api.ts'

/** Their guide asks to be left alone for 10 to 60 seconds; the outbox adds the jitter. */
const busyAfterMs = 10_000

export function outcomeOfFailure(error: unknown, items: number): Outcome {
  if (!(error instanceof TypesenseError)) return outcomeOfError(error, { items })
  const { status, message, afterMs } = error
  const details: OutcomeDetails = { status, message, code: `TYPESENSE_${status}` }
  if (status === 429) return unavailable({ ...details, afterMs })
  if (status === 503) return unavailable({ ...details, afterMs: afterMs ?? busyAfterMs })
  if (status === 401 || status === 403) {
    return misconfigured({ ...details, message: `${message}. Check apiKey and what it may do` })
  }
  if (status === 409) return items > 1 ? split(details) : rejected(details)
  const outcome = outcomeOfStatus(status, { items, message })
  return outcome.outcome === 'unavailable' ? unavailable({ ...details, afterMs }) : outcome
}

/** One line of an import that did not succeed; what it repeats of the document stays out. */
export function outcomeOfLine({ error, code }: { error?: unknown; code?: unknown }): Outcome {
  const message = `Typesense refused the document: ${discreet(String(error ?? 'without a reason'))}`
  if (BUSY.test(message)) {
    return unavailable({ code: 'TYPESENSE_BUSY', message, afterMs: busyAfterMs })
  }
  const status = Number(code)
  const details = { code: 'DOCUMENT_REFUSED', message, ...(status > 0 && { status }) }
  // A collection that went away, or a server in trouble, is told in lines too.
  if (status === 404) return misconfigured(details)
  return status >= 500 ? unavailable(details) : rejected(details)
}

/** Field names are between backticks; everything quoted otherwise may be content. */
function discreet(text: string): string {
  return text.replace(/"[^"]*"|'[^']*'/g, '"…"').slice(0, 300)
}
