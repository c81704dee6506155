/**
 * A document as OpenSearch stores it: its text as it came, with id and version added in front. The text is
 * never parsed on the way in. The version is external, so the server refuses an older one.
 */
import type { Outcome } from '../../sink.ts'
import { idProblem } from '../check-document.ts'
import { documentHash } from '../document-hash.ts'
import type { Deletion, StoredDocument, Upsert } from '../engine.ts'
import { refused } from '../items.ts'
import type { Json } from './api.ts'
import { reserved } from './schema.ts'

export type Action = 'index' | 'delete'

/** What is sent for one document, or why it is not. */
export interface Entry {
  readonly id: string
  readonly lines?: string
  readonly refused?: Outcome
}

export interface Bulk {
  readonly action: Action
  readonly entries: readonly Entry[]
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

/** The document without what was added to it. */
export function taken(source: Json): { version: bigint; document: Record<string, unknown> } {
  const { [reserved.id]: _, [reserved.version]: version, ...document } = source
  return { version: BigInt(String(version ?? 0)), document }
}

export function storedOf(id: string, source: Json): StoredDocument {
  const { version, document } = taken(source)
  const hash = source[reserved.id] === id ? documentHash(document) : `altered-${documentHash(source)}`
  return { id, version, hash, document }
}
