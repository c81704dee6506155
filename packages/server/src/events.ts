/**
 * The vocabulary: what each command on documents is called in the audit trail, which event tells of
 * it, and what that event does to the search indexes. One table; nothing emits a type outside it.
 */

export const modificationTypes = [
  'created',
  'updated',
  'deleted',
  'status_changed',
  'reviewed',
  'approved',
  'published',
  'content_changed',
] as const
export type ModificationType = (typeof modificationTypes)[number]

export const indexOperations = ['index_document', 'index_draft', 'delete_document', 'delete_draft'] as const
export type IndexOperation = (typeof indexOperations)[number]

export interface Consequence {
  /** Null: nobody changed the document, it is only told again. */
  readonly modification: ModificationType | null
  readonly event: `${'draft' | 'document'}.${string}`
  readonly index: readonly IndexOperation[]
}

export const consequences = {
  createDraft: of('created', 'draft.created', 'index_draft'),
  editDraft: of('updated', 'draft.updated', 'index_draft'),
  changeDraftPeople: of('updated', 'draft.people_changed', 'index_draft'),
  changeDraftContent: of('content_changed', 'draft.content_changed', 'index_draft'),
  deleteDraft: of('deleted', 'draft.deleted', 'delete_draft'),
  refreshDraft: of(null, 'draft.refreshed', 'index_draft'),
  publish: of('published', 'document.published', 'index_document', 'delete_draft'),
  createDocument: of('created', 'document.created', 'index_document'),
  replaceDocument: of('updated', 'document.replaced', 'index_document'),
  editDocument: of('updated', 'document.updated', 'index_document'),
  changePeople: of('updated', 'document.people_changed', 'index_document'),
  changeContent: of('content_changed', 'document.content_changed', 'index_document'),
  changeStatus: of('status_changed', 'document.status_changed', 'index_document'),
  approve: of('approved', 'document.approved', 'index_document'),
  requestChanges: of('reviewed', 'document.reviewed', 'index_document'),
  deleteDocument: of('deleted', 'document.deleted', 'delete_document'),
  refreshDocument: of(null, 'document.refreshed', 'index_document'),
} as const satisfies Readonly<Record<string, Consequence>>

export type DocumentCommand = keyof typeof consequences

function of<const M extends ModificationType | null, const E extends Consequence['event']>(
  modification: M,
  event: E,
  ...index: readonly IndexOperation[]
): { readonly modification: M; readonly event: E; readonly index: readonly IndexOperation[] } {
  return Object.freeze({ modification, event, index: Object.freeze(index) })
}

export const indexNames = ['documents', 'drafts'] as const
export type IndexName = (typeof indexNames)[number]

const operation = {
  documents: { index: 'index_document', delete: 'delete_document' },
  drafts: { index: 'index_draft', delete: 'delete_draft' },
} as const satisfies Record<IndexName, Record<'index' | 'delete', IndexOperation>>

/** What an event does to one index; undefined = nothing. */
export function effectOn(index: IndexName, eventType: string): 'index' | 'delete' | undefined {
  return effects[index].get(eventType)
}

/** The types an index has to hear, from the table: exactly those that change it. */
export function typesFor(index: IndexName): string[] {
  return [...effects[index].keys()]
}

const effects: Readonly<Record<IndexName, ReadonlyMap<string, 'index' | 'delete'>>> = {
  documents: effectsOf('documents'),
  drafts: effectsOf('drafts'),
}

function effectsOf(index: IndexName): Map<string, 'index' | 'delete'> {
  const found = new Map<string, 'index' | 'delete'>()
  for (const { event, index: operations } of Object.values<Consequence>(consequences)) {
    if (operations.includes(operation[index].index)) found.set(event, 'index')
    if (operations.includes(operation[index].delete)) found.set(event, 'delete')
  }
  return found
}
