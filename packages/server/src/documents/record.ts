/** What every change of a document leaves behind: an event, and the row of the audit trail that names it. */
import type { Actor } from '../actor.ts'
import { headersOf } from '../event-headers.ts'
import { consequences, type DocumentCommand } from '../events.ts'
import { emit, type Platform, type Tx } from '../platform.ts'
import { fieldChanges } from './changes.ts'
import { type Document, insidersOf, isDraft } from './document.ts'
import { payloadOf } from './search-document.ts'

export interface Change {
  readonly command: DocumentCommand
  readonly before: Document | undefined
  readonly after: Document | undefined
  readonly logId: string
  /** The version this change made. */
  readonly version: string
}

export function nextVersion({ version }: Pick<Document, 'version'>): string {
  return String(BigInt(version) + 1n)
}

/** The document an event speaks of: as it is now, or as it was last. */
function toldOf({ before, after, version }: Change): Document {
  const told = after ?? before
  if (told === undefined) throw new Error('a change has a document before or after it')
  return { ...told, version }
}

export function eventOf(actor: Actor, change: Change) {
  const document = toldOf(change)
  const payload = payloadOf(document)
  return {
    type: consequences[change.command].event,
    aggregate: ['document', document.id] as const,
    ...(payload !== undefined && { payload }),
    headers: headersOf(actor, document, change.logId),
  }
}

/** The event's id, or undefined where the outbox is turned off. */
export function tell(platform: Platform, tx: Tx, actor: Actor, change: Change): Promise<bigint | undefined> {
  return emit(platform, tx, eventOf(actor, change))
}

export const LOG_COLUMNS = `id, document_id, provider_file_id, version, modification_type, command, field_changes, modified_by_person_id,
  modified_by_identity, workspace_provider, api_endpoint, user_agent, ip_address, request_id, event_id, visible_to`

const LOG_TYPES = `id bigint, document_id uuid, provider_file_id text, version bigint, modification_type text, command text, field_changes jsonb,
  modified_by_person_id bigint, modified_by_identity text, workspace_provider text, api_endpoint text, user_agent text, ip_address inet,
  request_id text, event_id bigint, visible_to bigint[]`

/** An insert of log rows from the JSON list at this parameter. */
export function insertLog(parameter: string): string {
  return `insert into hermod.document_modification_log (${LOG_COLUMNS})
    select ${LOG_COLUMNS} from json_to_recordset(${parameter}::json) as l (${LOG_TYPES})`
}

/** One row of the audit trail, as `insertLog` takes it. */
export function logRow(actor: Actor, change: Change, eventId: bigint | undefined): object {
  const { id, providerFileId, workspaceProvider } = toldOf(change)
  return {
    id: change.logId,
    document_id: id,
    provider_file_id: providerFileId,
    version: change.version,
    modification_type: consequences[change.command].modification,
    command: change.command,
    field_changes: fieldChanges(change.before, change.after),
    modified_by_person_id: actor.personId,
    modified_by_identity: actor.identity,
    workspace_provider: workspaceProvider,
    api_endpoint: actor.endpoint,
    user_agent: actor.userAgent,
    ip_address: actor.ip,
    request_id: actor.requestId,
    event_id: eventId === undefined ? null : String(eventId),
    visible_to: visibleTo(change),
  }
}

/** Null = everybody: whatever happened to a document that is or was published by then. */
function visibleTo({ before, after }: Change): string[] | null {
  const published = [before, after].some((one) => one !== undefined && !isDraft(one))
  if (published) return null
  return [...new Set([before, after].flatMap((one) => (one === undefined ? [] : insidersOf(one))))]
}
