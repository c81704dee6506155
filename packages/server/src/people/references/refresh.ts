/**
 * Emits events for documents whose people were merged or renamed. They are references: the row is
 * read at delivery, so that search shows the current names. No new version and no audit row, because
 * nobody changed the documents.
 */
import type { Actor } from '../../actor.ts'
import { headersOf } from '../../event-headers.ts'
import { consequences } from '../../events.ts'
import type { Platform, Tx } from '../../platform.ts'

const CONCERNED = `select d.id, d.workspace_provider as "workspaceProvider", d.published_at is null as draft from hermod.document d
  where d.created_by = any ($1::bigint[]) or d.last_modified_by_person_id = any ($1::bigint[])
     or d.id in (select p.document_id from hermod.document_person p where p.person_id = any ($1::bigint[]))
  order by d.id`

const eventsAtOnce = 5_000

/** Returns the number of events. Call it in the transaction that changed the people, after their references moved. */
export async function refreshDocuments(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  personIds: readonly string[],
): Promise<number> {
  if (!platform.config.outbox) return 0
  const { rows } = await tx.query(CONCERNED, [personIds])
  const events = rows.map(({ id, draft, workspaceProvider }) => ({
    type: consequences[draft ? 'refreshDraft' : 'refreshDocument'].event,
    aggregate: ['document', id] as const,
    headers: headersOf(actor, { workspaceProvider }),
  }))
  for (let from = 0; from < events.length; from += eventsAtOnce) {
    await platform.outbox.emit(tx, events.slice(from, from + eventsAtOnce))
  }
  return events.length
}
