/** What a refusal of Meilisearch, at once or by a task, means for the documents that met it. */
import {
  misconfigured,
  type Outcome,
  type OutcomeDetails,
  outcomeOfError,
  outcomeOfStatus,
  rejected,
  retry,
  split,
  unavailable,
} from '../../sink.ts'
import { MeilisearchError, type MeilisearchTask } from './api.ts'

type Meaning = (details: OutcomeDetails, items: number) => Outcome

/** A task is all or nothing: halve until the document that spoils it stands alone. */
const oneOfThem: Meaning = (details, items) => (items > 1 ? split(details) : rejected(details))

/** By code, the first that fits; a payload that cannot be read may be one document's number. */
const BY_CODE: readonly [RegExp, Meaning][] = [
  [/^no_space_left_on_device$|^database_size_limit_reached$/, unavailable],
  [/^(missing|invalid)_document_|_fields_limit_(reached|exceeded)$|_vectors_type$|^too_many_vectors$/, oneOfThem],
  [/^(payload_too_large|malformed_payload)$/, oneOfThem],
  [/^(missing_payload|(missing|invalid)_content_type|bad_request)$/, misconfigured],
  [/^index_primary_key_|^index_not_found$/, misconfigured],
  [/^(too_many_open_files|task_canceled|task_unknown)$/, retry],
  [/^too_many_/, unavailable],
]

const NO_SPACE = /no space left|disk (is )?full|MDB_MAP_FULL/i

/**
 * The server merges neighbouring tasks, and a document can fail all of them: one that stands alone is
 * only rejected for what is said of itself.
 */
const NAMED = /(?:with (?:the )?id:? |identifier )`"?([^`"]+)"?`/i

/** `only`: the primary key, of a single document. */
export function outcomeOfMeilisearch(error: unknown, items: number, only?: string): Outcome {
  if (!(error instanceof MeilisearchError)) return outcomeOfError(error, { items })
  const { status, code, type, retryAfter } = error
  const details = { code, message: discreet(error), ...(status > 0 && { status }) }
  if (NO_SPACE.test(error.message)) return unavailable(details)
  const named = NAMED.exec(error.message)?.[1]
  if (items === 1 && only !== undefined && named !== undefined && named !== only) {
    return retry({
      code,
      message: 'another document failed the task that this one was merged into',
    })
  }
  const meaning = BY_CODE.find(([codes]) => codes.test(code))?.[1]
  if (meaning !== undefined) return meaning(details, items)
  if (type === 'auth') return misconfigured(details)
  if (status > 0) return outcomeOfStatus(status, { ...details, items, retryAfter })
  if (type === 'internal') return blind(error, details, items)
  return type === 'system' ? retry(details) : oneOfThem(details, items)
}

/**
 * The server does not say which document it could not take, nor whether it is ill itself. Halving finds the document;
 * one that is alone is rejected only if it was alone at the server too, and others pass.
 */
function blind({ byItself }: MeilisearchError, details: OutcomeDetails, items: number): Outcome {
  if (items > 1) return split(details)
  return byItself ? rejected(details) : retry(details)
}

/** `internal`: no document is named. */
export const isBlind = ({ status, error }: MeilisearchTask) => status === 'failed' && error?.type === 'internal'

/** Undefined while the task is at work; an error when it did not succeed. */
export function errorOfTask(task: MeilisearchTask): MeilisearchError | undefined {
  if (task.status === 'canceled') {
    const message = `task ${task.uid} was cancelled at the server`
    return new MeilisearchError(0, { code: 'task_canceled', type: '', message })
  }
  if (task.status !== 'failed') return undefined
  const { code = 'internal', type = 'internal', message = 'the task failed' } = task.error ?? {}
  return new MeilisearchError(0, { code, type, message })
}

export function unknownTask(uid: number): MeilisearchError {
  const message = `the server does not know task ${uid} any more`
  return new MeilisearchError(0, { code: 'task_unknown', type: '', message })
}

const quotedCharsMax = 40

/** Meilisearch quotes what it was given, and a document belongs in no message. Names and the reason stay. */
function discreet({ message }: MeilisearchError): string {
  return message
    .replace(/[{[].*/s, '…')
    .replace(/`".{40,}"`/s, '`…`')
    .replace(/`([^`]*)(`|$)/g, (quoted, inside: string) => (inside.length > quotedCharsMax ? '`…`' : quoted))
    .slice(0, 300)
}
