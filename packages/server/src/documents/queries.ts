/** Reads of documents: one, lists, and what the search indexes are filled from. */
import type { WorkspaceProvider } from '../config.ts'
import type { Place } from '../place.ts'
import type { Asked } from '../platform.ts'
import type { Document, Status } from './document.ts'
import { type DocumentRow, documentOf, withoutContent } from './rows.ts'
import { type SearchDocument, searchDocument } from './search-document.ts'

export async function findDocument(db: Asked, id: string): Promise<Document | undefined> {
  const { rows } = await db.query<DocumentRow>('select * from hermod.document_whole where id = $1', [id])
  const [row] = rows
  return row === undefined ? undefined : documentOf(row)
}

/** Repeated values mean or; all filters hold. */
export interface DocumentFilter {
  readonly status?: readonly Status[]
  readonly product?: readonly string[]
  readonly docType?: readonly string[]
  /** Ids of people. */
  readonly owner?: readonly string[]
  /** Who changed it last. */
  readonly person?: readonly string[]
  readonly provider?: readonly WorkspaceProvider[]
  /** Modified at this time or later. */
  readonly since?: string
}

export interface ListQuestion {
  readonly filter: DocumentFilter
  /** Drafts of this person; published documents when left out. */
  readonly draftsOf?: string | null
  /** Modified and id of the last row of the page before. */
  readonly after: Place | undefined
  readonly limit: number
}

/** Last modified first, without content. */
export async function listDocuments(db: Asked, question: ListQuestion): Promise<Document[]> {
  const { text, values } = listStatement(question)
  const { rows } = await db.query<DocumentRow>(text, values)
  return rows.map(documentOf)
}

export function placeOfDocument({ modifiedAt, id }: Document): Place {
  return [modifiedAt.toISOString(), id]
}

/** Where each filter looks. */
const conditions = {
  status: 'd.status = any (?::text[])',
  product: 'd.product = any (?::text[])',
  docType: 'd.doc_type = any (?::text[])',
  owner: `exists (select from hermod.document_person o where o.document_id = d.id and o.relation = 'owner' and o.person_id = any (?::bigint[]))`,
  person: 'd.last_modified_by_person_id = any (?::bigint[])',
  provider: 'd.workspace_provider = any (?::text[])',
  since: 'd.modified_at >= ?::timestamptz',
} as const satisfies Record<keyof DocumentFilter, string>

const MINE = `d.published_at is null and exists (select from hermod.document_person i
  where i.document_id = d.id and i.person_id = ?::bigint and i.relation in ('owner', 'contributor'))`

function listStatement({ filter, draftsOf, after, limit }: ListQuestion) {
  const values: unknown[] = []
  const where: string[] = []
  const and = (condition: string, value: unknown) => {
    values.push(value)
    where.push(condition.replace('?', `$${values.length}`))
  }
  if (draftsOf === undefined) where.push('d.published_at is not null')
  else and(MINE, draftsOf)
  for (const [name, condition] of Object.entries(conditions)) {
    const value = filter[name as keyof DocumentFilter]
    if (value !== undefined) and(condition, value)
  }
  if (after !== undefined) {
    values.push(...after)
    const n = values.length
    where.push(`(d.modified_at, d.id) < ($${n - 1}::timestamptz, $${n}::uuid)`)
  }
  values.push(limit)
  const text = `select ${withoutContent} from hermod.document_whole d where ${where.join(' and ')}
    order by d.modified_at desc, d.id desc limit $${values.length}`
  return { text, values }
}

/** The current search documents of these ids, for events that carry none. Absent = gone from the index. */
export async function searchDocuments(
  db: Asked,
  index: 'documents' | 'drafts',
  ids: readonly string[],
): Promise<Map<string, SearchDocument>> {
  const { rows } = await db.query<DocumentRow>(`${rowsOf(index)} and id = any ($1::uuid[])`, [ids])
  return new Map(rows.map((row) => [row.id, documentOfRow(row)]))
}

/** The rows an index consists of: what it is filled from and compared with. */
export function rowsOf(index: 'documents' | 'drafts'): string {
  const published = index === 'documents' ? 'is not null' : 'is null'
  return `select * from hermod.document_whole where published_at ${published}`
}

export function documentOfRow(row: DocumentRow): SearchDocument {
  return searchDocument(documentOf(row))
}

/** Of these drafts, the ones this person may see at this moment. */
export async function draftsSeenBy(
  db: Asked,
  personId: string | null,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0 || personId === null) return new Set()
  const { rows } = await db.query<{ id: string }>(
    `select d.id from hermod.document d where d.id = any ($1::uuid[]) and d.published_at is null
        and exists (select from hermod.document_person i where i.document_id = d.id and i.person_id = $2
                     and i.relation in ('owner', 'contributor'))`,
    [ids, personId],
  )
  return new Set(rows.map(({ id }) => id))
}
