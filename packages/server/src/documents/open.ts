/** Opens a document for a change: its row is locked first, so that decisions use current data. */
import type { Actor } from '../actor.ts'
import type { Tx } from '../platform.ts'
import { Problem } from '../problems.ts'
import { type Document, isDraft, type PersonRef } from './document.ts'
import { type DocumentRow, documentOf } from './rows.ts'
import { assertSees } from './rules.ts'

const OPEN = `select d.*, clock_timestamp() as opened_at, nextval('hermod.document_modification_log_id_seq') as log_id,
    (select p.display_name from hermod.person p where p.id = $2) as actor_name
  from hermod.open_document($1, $3) d`

export interface Opened {
  readonly document: Document
  /** The database's time once the lock was held: changes of one document never go back in time. */
  readonly at: Date
  /** Of the row this change will leave in the audit trail. */
  readonly logId: string
  readonly by: PersonRef | null
}

/** Locked, unless the caller saw another version: then `assertVersion` refuses what is returned. */
export async function openDocument(
  tx: Tx,
  { personId }: Pick<Actor, 'personId'>,
  id: string,
  seen?: string,
): Promise<Opened | undefined> {
  const { rows } = await tx.query<DocumentRow & { opened_at: Date; log_id: string; actor_name: string | null }>(OPEN, [
    id,
    personId,
    seen ?? null,
  ])
  const [row] = rows
  if (row === undefined) return undefined
  const { opened_at: at, log_id: logId, actor_name: name } = row
  const by = personId === null ? null : { id: personId, displayName: name ?? '' }
  return { document: documentOf(row), at, logId, by }
}

/** Which kind of resource was asked for, and the version the caller saw (undefined = any). */
export interface Target {
  readonly id: string
  readonly kind: 'draft' | 'document'
  readonly seen: string | undefined
}

/** Locks and reads what the caller may see, at the version they saw. */
export async function openTarget(tx: Tx, actor: Actor, target: Target): Promise<Opened> {
  const opened = await openDocument(tx, actor, target.id, target.seen)
  assertSees(opened?.document, actor)
  if (opened === undefined || isDraft(opened.document) !== (target.kind === 'draft')) {
    throw wrongKind(target)
  }
  return opened
}

export function wrongKind({ id, kind }: Pick<Target, 'id' | 'kind'>): Problem {
  const detail =
    kind === 'draft'
      ? `This draft was published: /api/v2/documents/${id}.`
      : `This document is still a draft: /api/v2/drafts/${id}.`
  return new Problem('HMD_NOT_FOUND', detail)
}
