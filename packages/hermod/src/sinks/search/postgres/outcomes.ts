/** What an error of the search database means for the events that met it. */
import { isConnectionError } from '../../../database.ts'
import {
  misconfigured,
  type Outcome,
  type OutcomeDetails,
  outcomeOfError,
  rejected,
  retry,
  split,
  unavailable,
} from '../../sink.ts'

type Meaning = (details: OutcomeDetails, items: number) => Outcome

/** One event spoils the statement: halve until it stands alone. */
const oneOfThem: Meaning = (details, items) => (items > 1 ? split(details) : rejected(details))

/** The first that matches the SQLSTATE; 5 characters, or the class. */
const MEANINGS: readonly [RegExp, Meaning][] = [
  [/^(40001|40P01|55P03)$/, retry],
  [/^(42P01|42703|42704|42883|42501|3D000|3F000|28...|58P01)$/, misconfigured],
  // 25006: a standby, during a failover; 57014: cancelled, by a timeout or by us.
  [/^(08...|57P..|53...|25006|57014|58...|XX...)$/, unavailable],
  [/^(22...|54...|23...|21000)$/, oneOfThem],
]

export function outcomeOfSqlError(error: unknown, items: number): Outcome {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  const details = { code: String(code ?? 'ERROR'), message: discreet(String(message ?? '')) }
  if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code)) {
    const [, meaning] = MEANINGS.find(([state]) => state.test(code)) ?? [undefined, oneOfThem]
    return meaning(details, items)
  }
  // The driver's own words have no code: a pool that was ended, a connection that broke.
  if (isConnectionError(error) || /after calling end|connection/i.test(details.message)) {
    return unavailable({ ...details, code: details.code === 'ERROR' ? 'CLOSED' : details.code })
  }
  return outcomeOfError(error, { items })
}

/** PostgreSQL quotes what it was given, and a payload belongs in no message. */
function discreet(message: string): string {
  return message.replace(/"[^"]{80,}"/g, '"…"').slice(0, 300)
}
