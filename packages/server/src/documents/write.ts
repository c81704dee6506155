/** Writes what a command decided: the event first (its id belongs into the log), then row and log in one statement. */
import type { Actor } from '../actor.ts'
import type { Platform, Tx } from '../platform.ts'
import type { Document, Relation } from './document.ts'
import { type Change, insertLog, logRow, nextVersion, tell } from './record.ts'

const UPDATE = `with changed as (
    update hermod.document set version = $2, status = $3, doc_type = $4, product = $5, doc_number = $6, title = $7, summary = $8,
        content = coalesce($9, content), content_hash = $10, tags = $11, custom_fields = $12, last_modified_by_person_id = $13,
        modified_at = $14, published_at = $15
      where id = $1)
  ${insertLog('$16')}`

const DELETE = `with gone as (delete from hermod.document where id = $1) ${insertLog('$2')}`

/** Deleted rows and kept or new rows are never the same. */
const PEOPLE = `with given as (
    select * from unnest($2::text[], $3::bigint[], $4::integer[]) as g (relation, person_id, place)),
  gone as (
    delete from hermod.document_person p where p.document_id = $1
       and not exists (select from given g where g.relation = p.relation and g.person_id = p.person_id))
  insert into hermod.document_person (document_id, relation, person_id, place)
    select $1, relation, person_id, place from given
    on conflict (document_id, relation, person_id) do update set place = excluded.place`

const APPROVALS = `with given as (
    select * from jsonb_to_recordset($2::jsonb) as g ("personId" bigint, decision text, comment text, "decidedAt" timestamptz)),
  gone as (
    delete from hermod.approval a where a.document_id = $1 and not exists (select from given g where g."personId" = a.person_id))
  insert into hermod.approval (document_id, person_id, decision, comment, decided_at)
    select $1, "personId", decision, comment, "decidedAt" from given
    on conflict (document_id, person_id) do update
      set decision = excluded.decision, comment = excluded.comment, decided_at = excluded.decided_at
      where (approval.decision, approval.comment, approval.decided_at)
        is distinct from (excluded.decision, excluded.comment, excluded.decided_at)`

export interface Edited extends Omit<Change, 'version'> {
  readonly before: Document
  readonly after: Document
}

/** A changed document, one version on. */
export async function saveChange(platform: Platform, tx: Tx, actor: Actor, edited: Edited): Promise<Document> {
  const { before } = edited
  const version = nextVersion(before)
  const after = { ...edited.after, version }
  const change = { ...edited, after, version }
  const eventId = await tell(platform, tx, actor, change)
  await tx.query(UPDATE, [...columnsOf(before, after), JSON.stringify([logRow(actor, change, eventId)])])
  if (JSON.stringify(everybody(before)) !== JSON.stringify(everybody(after)))
    await tx.query(PEOPLE, peopleColumns(after))
  if (JSON.stringify(before.approvals) !== JSON.stringify(after.approvals)) {
    await tx.query(APPROVALS, [after.id, JSON.stringify(after.approvals)])
  }
  return after
}

function columnsOf(before: Document, after: Document): unknown[] {
  const { id, version, status, docType, product, docNumber, title, summary } = after
  const { content, contentHash, tags, customFields, lastModifiedBy } = after
  return [
    ...[id, version, status, docType, product, docNumber, title, summary],
    // Unchanged rows are not sent again.
    ...[contentHash === before.contentHash ? null : content, contentHash],
    ...[tags, JSON.stringify(customFields), lastModifiedBy?.id ?? null],
    ...[after.modifiedAt, after.publishedAt],
  ]
}

/** A deleted document: row, people and decisions go, the audit trail stays. */
export async function saveDeletion(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  { command, before, logId }: Pick<Edited, 'command' | 'before' | 'logId'>,
): Promise<void> {
  const change = { command, before, after: undefined, logId, version: nextVersion(before) }
  const eventId = await tell(platform, tx, actor, change)
  await tx.query(DELETE, [before.id, JSON.stringify([logRow(actor, change, eventId)])])
}

export interface PlacedPerson {
  readonly relation: Relation
  readonly id: string
  readonly place: number
}

/** The people a document was given; its authors come from what was done to it. */
export function placed({ owners, contributors, approvers }: Document): PlacedPerson[] {
  return [...as('owner', owners), ...as('contributor', contributors), ...as('approver', approvers)]
}

function everybody(document: Document): PlacedPerson[] {
  return [...placed(document), ...as('author', document.authors)]
}

function as(relation: Relation, people: Document['owners']): PlacedPerson[] {
  return people.map(({ id }, place) => ({ relation, id, place }))
}

export function peopleText(document: Document): string {
  return JSON.stringify(placed(document))
}

function peopleColumns(document: Document): unknown[] {
  const people = everybody(document)
  return [
    document.id,
    people.map(({ relation }) => relation),
    people.map(({ id }) => id),
    people.map(({ place }) => place),
  ]
}
