/**
 * New documents, one or many in one go: four statements however many there are. Numbers of a
 * product are given under the lock of its row, so they are dense and unique; a rollback gives
 * them back.
 */
import { createHash, randomUUID } from 'node:crypto'
import type { Actor } from '../actor.ts'
import type { WorkspaceProvider } from '../config.ts'
import type { DocumentCommand } from '../events.ts'
import type { Platform, Tx } from '../platform.ts'
import { Problem } from '../problems.ts'
import type { Document, DocumentFields, DocumentPeople, PersonRef, Status } from './document.ts'
import { everybodyIn, KNOWN, type Known, type NamedPeople, namedPeople } from './named-people.ts'
import { type Change, eventOf, insertLog, logRow } from './record.ts'
import { placed } from './write.ts'

export interface NewDocument extends DocumentFields, NamedPeople {
  readonly status: Status
  readonly workspaceProvider: WorkspaceProvider
  /** For local documents this is the document's id. */
  readonly providerFileId?: string
  /** When it began elsewhere; now when left out. */
  readonly createdAt?: Date
}

const PREPARE = `with known as materialized (${KNOWN})
  select clock_timestamp() as at, (select coalesce(jsonb_agg(k), '[]') from known k) as people,
    array(select nextval('hermod.document_modification_log_id_seq')::text from generate_series(1, $2::integer)) as "logIds"`

const NUMBERS = `insert into hermod.product_number as n (product, last)
    select product, count from unnest($1::text[], $2::integer[]) as g (product, count) order by product
  on conflict (product) do update set last = n.last + excluded.last returning product, last`

const COLUMNS = `id, version, status, doc_type, product, doc_number, title, summary, content, content_hash, tags, custom_fields,
  workspace_provider, provider_file_id, created_by, last_modified_by_person_id, created_at, modified_at, published_at`

const INSERT = `with made as (
    insert into hermod.document (${COLUMNS}) select ${COLUMNS} from json_to_recordset($1::json) as d (id uuid, version bigint, status text,
      doc_type text, product text, doc_number integer, title text, summary text, content text, content_hash text, tags text[],
      custom_fields jsonb, workspace_provider text, provider_file_id text, created_by bigint, last_modified_by_person_id bigint,
      created_at timestamptz, modified_at timestamptz, published_at timestamptz)),
  named as (
    insert into hermod.document_person (document_id, relation, person_id, place) select document_id, relation, person_id, place
      from json_to_recordset($2::json) as p (document_id uuid, relation text, person_id bigint, place integer))
  ${insertLog('$3')}`

/** Documents in the order given; `at` names the place of one in the request, for problems. */
export async function insertDocuments(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  wanted: readonly NewDocument[],
  at: (index: number, pointer: string) => string = (_index, pointer) => pointer,
): Promise<Document[]> {
  const creator = creatorOf(actor)
  const { now, known, logIds } = await prepare(tx, creator, wanted)
  const by = known.get(creator) ?? { id: creator, displayName: '' }
  const people = wanted.map((one, index) => namedPeople(one, known, (pointer) => at(index, pointer)))
  const numbers = await giveNumbers(tx, wanted)
  const documents = wanted.map((one, index): Document => {
    const names = people[index]
    if (names === undefined) throw new Error('every document has its people')
    return fresh(one, names, by, now, numbers[index] ?? null)
  })
  await write(platform, tx, actor, documents, logIds)
  return documents
}

function creatorOf({ personId }: Actor): string {
  if (personId !== null) return personId
  throw new Problem('HMD_FORBIDDEN', 'A document is made by a person; nobody is signed in.')
}

async function prepare(
  tx: Tx,
  creator: string,
  wanted: readonly NewDocument[],
): Promise<{ now: Date; known: Known; logIds: readonly string[] }> {
  const ids = new Set([creator, ...wanted.flatMap(everybodyIn)])
  const { rows } = await tx.query<{ at: Date; people: PersonRef[]; logIds: string[] }>(PREPARE, [
    [...ids],
    wanted.length,
  ])
  const [row] = rows
  if (row === undefined) throw new Error('preparing answers with one row')
  const known = new Map(row.people.map((person) => [person.id, person]))
  return { now: row.at, known, logIds: row.logIds }
}

/** A number for each published one, in the order given; null for drafts. */
export async function giveNumbers(
  tx: Tx,
  wanted: readonly Pick<NewDocument, 'product' | 'status'>[],
): Promise<(number | null)[]> {
  const counts = new Map<string, number>()
  const places = wanted.map(({ product, status }) => {
    if (status === 'WIP') return null
    const place = (counts.get(product) ?? 0) + 1
    counts.set(product, place)
    return place
  })
  if (counts.size === 0) return places
  const { rows } = await tx.query<{ product: string; last: number }>(NUMBERS, [
    [...counts.keys()],
    [...counts.values()],
  ])
  const before = new Map(rows.map(({ product, last }) => [product, last - (counts.get(product) ?? 0)]))
  return places.map((place, index) => (place === null ? null : place + (before.get(wanted[index]?.product ?? '') ?? 0)))
}

export function hashOf(content: string): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Field by field, like the columns below: half a million of them are made by one import. */
function fresh(
  wanted: NewDocument,
  { owners, contributors, approvers }: DocumentPeople,
  by: PersonRef,
  now: Date,
  docNumber: number | null,
): Document {
  const id = randomUUID()
  return {
    id,
    version: '1',
    status: wanted.status,
    title: wanted.title,
    docType: wanted.docType,
    product: wanted.product,
    docNumber,
    summary: wanted.summary,
    content: wanted.content,
    contentHash: hashOf(wanted.content),
    tags: wanted.tags,
    customFields: wanted.customFields,
    owners,
    contributors,
    approvers,
    authors: [],
    approvals: [],
    workspaceProvider: wanted.workspaceProvider,
    providerFileId: wanted.providerFileId ?? id,
    createdBy: by,
    lastModifiedBy: by,
    createdAt: wanted.createdAt ?? now,
    modifiedAt: now,
    publishedAt: wanted.status === 'WIP' ? null : now,
  }
}

async function write(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  documents: readonly Document[],
  logIds: readonly string[],
): Promise<void> {
  const changes = documents.map((after, index): Change => {
    const command: DocumentCommand = after.publishedAt === null ? 'createDraft' : 'createDocument'
    return { command, before: undefined, after, version: '1', logId: logIds[index] ?? '' }
  })
  const eventIds = platform.config.outbox
    ? await platform.outbox.emit(
        tx,
        changes.map((change) => eventOf(actor, change)),
      )
    : []
  const rows = changes.map((change, index) => logRow(actor, change, eventIds[index]))
  const people = documents.flatMap((document) =>
    placed(document).map(({ relation, id, place }) => ({
      document_id: document.id,
      relation,
      person_id: id,
      place,
    })),
  )
  await tx
    .query(
      INSERT,
      [documents.map(columnsOf), people, rows].map((list) => JSON.stringify(list)),
    )
    .catch((error) => {
      throw asRefusal(error)
    })
}

function columnsOf(document: Document): object {
  return {
    id: document.id,
    version: document.version,
    status: document.status,
    product: document.product,
    title: document.title,
    summary: document.summary,
    content: document.content,
    tags: document.tags,
    doc_type: document.docType,
    doc_number: document.docNumber,
    content_hash: document.contentHash,
    custom_fields: document.customFields,
    workspace_provider: document.workspaceProvider,
    provider_file_id: document.providerFileId,
    created_by: document.createdBy.id,
    last_modified_by_person_id: document.lastModifiedBy?.id ?? null,
    created_at: document.createdAt,
    modified_at: document.modifiedAt,
    published_at: document.publishedAt,
  }
}

function asRefusal(error: unknown): unknown {
  const { constraint, detail } = (error ?? {}) as { constraint?: string; detail?: string }
  if (constraint !== 'document_provider_file') return error
  const file = /\)=\((\w+), (.*)\) already exists/.exec(detail ?? '')
  const says = file === null ? 'This file' : `${file[1]} file ${file[2]}`
  return new Problem('HMD_FILE_REGISTERED', `${says} belongs to another document already.`, {
    errors: [{ pointer: '/providerFileId', detail: 'belongs to another document already' }],
    cause: error,
  })
}
