/**
 * Upserts and deletions as a bulk: the document's text as it came, with its id and version added in
 * front and never parsed. The version is external, so an older one is refused by the server.
 */
import { broken, type Outcome, rejected } from '../../sink.ts'
import { idProblem } from '../check-document.ts'
import type { Deletion, Upsert } from '../engine.ts'
import type { ApiCall, BulkAnswer, OpenSearchApi } from './api.ts'
import type { OpenSearchGeneration } from './generations.ts'
import { reserved } from './mapping.ts'
import { outcomeOfFailure, outcomeOfItem } from './outcomes.ts'

type Action = 'index' | 'delete'

/** What is sent for one document, or why it is not. */
interface Entry {
  readonly id: string
  readonly lines?: string
  readonly refused?: Outcome
}

export interface Bulk {
  readonly action: Action
  readonly entries: readonly Entry[]
}

/** An outcome per document of one generation; `gone`: the generation is not there any more. */
export interface Written {
  readonly outcomes: readonly Outcome[]
  readonly gone: boolean
}

export function bulkOfUpserts(documents: readonly Upsert[]): Bulk {
  return { action: 'index', entries: documents.map(upsertEntry) }
}

export function bulkOfDeletions(documents: readonly Deletion[]): Bulk {
  const entries = documents.map(({ id, version }) => {
    const problem = idProblem(id)
    if (problem !== undefined) return { id, refused: refused(problem) }
    return { id, lines: actionLine('delete', id, version) }
  })
  return { action: 'delete', entries }
}

function upsertEntry({ id, version, json }: Upsert): Entry {
  const problem = idProblem(id)
  if (problem !== undefined) return { id, refused: refused(problem) }
  const source = spliced(json, id, version)
  if (source === undefined) {
    const says = 'the document is not an object: give the event a payload, or the subscription load()'
    return { id, refused: refused(says) }
  }
  return { id, lines: `${actionLine('index', id, version)}${source}\n` }
}

const refused = (message: string) => rejected({ code: 'DOCUMENT_INVALID', message })

function actionLine(action: Action, id: string, version: bigint): string {
  return `{"${action}":{"_id":${JSON.stringify(id)},"version":${version},"version_type":"external"}}\n`
}

/** In JSON a line can only end between values, where a space means the same. */
function spliced(json: string, id: string, version: bigint): string | undefined {
  const text = json.trim()
  if (text.length < 2 || text[0] !== '{' || text.at(-1) !== '}') return undefined
  const rest = text.slice(1).replace(/[\r\n]+/g, ' ')
  const comma = rest.trimStart() === '}' ? '' : ','
  const ours = `"${reserved.id}":${JSON.stringify(id)},"${reserved.version}":"${version}"`
  return `{${ours}${comma}${rest}`
}

export async function writeTo(
  api: OpenSearchApi,
  { alias }: OpenSearchGeneration,
  { action, entries }: Bulk,
  call: ApiCall,
): Promise<Written> {
  const sent = entries.filter(({ lines }) => lines !== undefined)
  if (sent.length === 0) return { outcomes: entries.map(refusedOf), gone: false }
  try {
    const answer = await api.bulk(alias, sent.map(({ lines }) => lines).join(''), call)
    return settle(action, entries, sent, answer)
  } catch (error) {
    const outcome = outcomeOfFailure(error, sent.length)
    const gone = outcome.code === MISSING
    return { outcomes: entries.map((entry) => entry.refused ?? outcome), gone }
  }
}

const MISSING = 'index_not_found_exception'

/** Those that are named settle; whatever is missing, more or foreign settles nothing. */
function settle(action: Action, entries: readonly Entry[], sent: readonly Entry[], { items }: BulkAnswer): Written {
  const settled = new Map<Entry, Outcome>()
  sent.forEach((entry, at) => {
    const item = Array.isArray(items) ? items[at]?.[action] : undefined
    const named = item?._id === entry.id && Number.isInteger(item.status)
    if (named) settled.set(entry, outcomeOfItem(action, item))
  })
  const outcomes = entries.map(
    (entry) => entry.refused ?? settled.get(entry) ?? broken('got no answer for this document'),
  )
  return { outcomes, gone: outcomes.some(({ code }) => code === MISSING) }
}

const refusedOf = ({ refused: outcome }: Entry) => outcome as Outcome
