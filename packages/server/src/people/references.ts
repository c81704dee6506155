/**
 * Everything in the database that refers to a person, and what a merge does to it. A test reads the
 * catalogue and fails for a column that is not in this list.
 */
import { documentReferences } from './references/documents.ts'
import { identityReferences } from './references/identities.ts'
import type { Reference } from './references/reference.ts'
import { tokenReferences } from './references/tokens.ts'

export type { Pair } from './references/reference.ts'

export const references: readonly Reference[] = [
  identityReferences as Reference,
  documentReferences as Reference,
  tokenReferences as Reference,
]

/** Columns that a merge changes. */
export const movedColumns: readonly string[] = [
  'person_identity.person_id',
  'document.created_by',
  'document.last_modified_by_person_id',
  'document_person.person_id',
  'approval.person_id',
]

/** Columns that a merge leaves alone, and why. */
export const keptColumns: Readonly<Record<string, string>> = {
  'person.merged_into': 'the merge itself; followed when read',
  'person_merge.from_person': 'history: what was merged',
  'person_merge.into_person': 'history: what was merged',
  'person_merge.done_by': 'history: who did it, then',
  'person_merge.undone_by': 'history: who did it, then',
  'person_audit.person_id': 'history; read with everybody a person has been',
  'person_audit.actor_id': 'history: who did it, then',
  'api_token.person_id': 'the tokens of both are revoked, so they stay where they were',
  'api_token.created_by': 'history: who made it, then',
  'api_token.revoked_by': 'history: who did it, then',
  'import.actor_id': 'history: who imported it, then',
  'document_modification_log.modified_by_person_id': 'history; followed when read',
  'document_modification_log.visible_to': 'history; read with everybody a person has been',
}
