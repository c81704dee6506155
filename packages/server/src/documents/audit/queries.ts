/** Reads of the audit trail: of one document, also after it is gone, or across all of them. */
import type { Place } from '../../place.ts'
import type { Asked } from '../../platform.ts'
import type { FieldChanges } from '../changes.ts'
import type { PersonRef } from '../document.ts'

export interface LogEntry {
  readonly id: string
  readonly documentId: string
  readonly providerFileId: string
  readonly version: string
  readonly type: string
  readonly command: string
  readonly changes: FieldChanges
  /** The person today; merges are followed. */
  readonly person: PersonRef | null
  /** As it was recorded. */
  readonly recordedPersonId: string | null
  readonly identity: string
  readonly workspaceProvider: string
  readonly endpoint: string
  readonly userAgent: string | null
  readonly ipAddress: string | null
  readonly requestId: string | null
  readonly eventId: string | null
  readonly at: Date
  /** The reader could see the document at that time. */
  readonly visible: boolean
}

const ENTRY = `l.id::text, l.document_id as "documentId", l.provider_file_id as "providerFileId", l.version::text, l.modification_type as type, l.command,
    l.field_changes as changes, l.modified_by_person_id::text as "recordedPersonId", l.modified_by_identity as identity,
    l.workspace_provider as "workspaceProvider", l.api_endpoint as endpoint, l.user_agent as "userAgent", host(l.ip_address) as "ipAddress",
    l.request_id as "requestId", l.event_id::text as "eventId", l.created_at as at,
    case when p.id is not null then jsonb_build_object('id', p.id::text, 'displayName', p.display_name) end as person,
    (l.visible_to is null or l.visible_to && hermod.selves_of($1)) as visible
  from hermod.document_modification_log l
  left join hermod.person p on p.id = hermod.current_person(l.modified_by_person_id)`

export interface LogFilter {
  readonly document?: string
  readonly providerFileId?: string
  /** Includes the ids of people merged into this one. */
  readonly person?: string
  readonly type?: readonly string[]
  readonly since?: string
  /** Only what the reader could see at the time. */
  readonly visible?: true
}

const conditions = {
  document: 'l.document_id = ?::uuid',
  providerFileId: 'l.provider_file_id = ?',
  person: 'l.modified_by_person_id = any (hermod.selves_of(?::bigint))',
  type: 'l.modification_type = any (?::text[])',
  since: 'l.created_at >= ?::timestamptz',
  visible: '?::boolean and (l.visible_to is null or l.visible_to && hermod.selves_of($1))',
} as const satisfies Record<keyof LogFilter, string>

export interface LogQuestion {
  readonly reader: string | null
  readonly filter: LogFilter
  readonly after: Place | undefined
  readonly limit: number
}

/** Newest first. */
export async function listLog(db: Asked, { reader, filter, after, limit }: LogQuestion): Promise<LogEntry[]> {
  const values: unknown[] = [reader]
  const where = ['true']
  const and = (condition: string, value: unknown) => {
    values.push(value)
    where.push(condition.replace('?', `$${values.length}`))
  }
  for (const [name, condition] of Object.entries(conditions)) {
    const value = filter[name as keyof LogFilter]
    if (value !== undefined) and(condition, value)
  }
  if (after !== undefined) and('l.id < ?::bigint', after[0])
  values.push(limit)
  const { rows } = await db.query<LogEntry>(
    `select ${ENTRY} where ${where.join(' and ')} order by l.id desc limit $${values.length}`,
    values,
  )
  return rows
}

export function placeOfEntry({ id }: LogEntry): Place {
  return [id]
}

/** One entry of a document the reader may see: the newest, or the one with this id. */
export async function findEntry(
  db: Asked,
  { reader, document, log }: { reader: string | null; document: string; log?: string | undefined },
): Promise<LogEntry | undefined> {
  const { rows } = await db.query<LogEntry>(
    `select ${ENTRY} where l.document_id = $2 and ($3::bigint is null or l.id = $3)
        and (l.visible_to is null or l.visible_to && hermod.selves_of($1)) order by l.id desc limit 1`,
    [reader, document, log ?? null],
  )
  return rows[0]
}
