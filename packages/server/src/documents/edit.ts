/** Edits of a document: merged or replaced, and what that means for the review. */
import type { Actor } from '../actor.ts'
import type { DocumentCommand } from '../events.ts'
import type { Platform, Tx } from '../platform.ts'
import { Problem } from '../problems.ts'
import { assertVersion } from '../version-tags.ts'
import { fieldChanges } from './changes.ts'
import { hashOf } from './create.ts'
import {
  type CustomFields,
  type CustomValue,
  type Document,
  type DocumentFields,
  isDraft,
  type PersonRef,
  type Status,
} from './document.ts'
import { everybodyIn, knownPeople, type NamedPeople, namedPeople } from './named-people.ts'
import { type Opened, openTarget, type Target } from './open.ts'
import * as rules from './rules.ts'
import { peopleText, saveChange } from './write.ts'

/** Fields left out stay as they are. */
export interface Edit extends Partial<Omit<DocumentFields, 'customFields'>>, Partial<NamedPeople> {
  readonly status?: Status
  /** Merged by key; null removes one. */
  readonly customFields?: Readonly<Record<string, CustomValue | null>>
}

export type Replacement = DocumentFields & NamedPeople & { readonly status?: Status }

/** Merges into a draft or a document. An edit that changes nothing leaves no trace. */
export async function edit(platform: Platform, tx: Tx, actor: Actor, target: Target, edit: Edit): Promise<Document> {
  const opened = await openTarget(tx, actor, target)
  const { customFields, ...rest } = edit
  const merged = merge(opened.document.customFields, customFields)
  return change(platform, tx, actor, target, opened, { ...rest, customFields: merged })
}

function merge(fields: CustomFields, changes: Edit['customFields'] = {}): CustomFields {
  const merged = { ...fields, ...changes }
  return Object.fromEntries(Object.entries(merged).flatMap(([key, value]) => (value === null ? [] : [[key, value]])))
}

export async function replace(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  target: Target,
  replacement: Replacement,
): Promise<Document> {
  const opened = await openTarget(tx, actor, target)
  return change(platform, tx, actor, target, opened, replacement, 'replaceDocument')
}

type Wish = Partial<Replacement>

async function change(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  { seen }: Target,
  opened: Opened,
  wish: Wish,
  command?: DocumentCommand,
): Promise<Document> {
  const { document: before, at, logId, by } = opened
  rules.assertEdits(before, actor)
  assertVersion(seen, before.version)
  const edited = await apply(tx, before, wish, by)
  if (Object.keys(fieldChanges(before, edited)).length === 0) return before
  assertAllowed(before, edited, actor, wish)
  const after = { ...edited, modifiedAt: at, lastModifiedBy: by }
  const named = command ?? commandFor(before, after)
  return saveChange(platform, tx, actor, { command: named, before, after, logId })
}

async function apply(tx: Tx, before: Document, wish: Wish, by: PersonRef | null): Promise<Document> {
  const { owners, contributors, approvers, status, ...fields } = wish
  const people = await peopleAfter(tx, before, { owners, contributors, approvers })
  const content = fields.content ?? before.content
  const contentHash = content === before.content ? before.contentHash : hashOf(content)
  const written = { ...before, ...defined(fields), ...people, contentHash }
  const edited = {
    ...written,
    ...rules.reviewAfterEdit(before, written),
    authors: rules.authorsAfter(before, written, by),
  }
  return status === undefined ? edited : { ...edited, ...rules.changeStatus(edited, status) }
}

async function peopleAfter(
  tx: Tx,
  before: Document,
  wish: { readonly [K in keyof NamedPeople]: NamedPeople[K] | undefined },
): Promise<Partial<Document>> {
  if (Object.values(wish).every((list) => list === undefined)) return {}
  const ids = (people: Document['owners']) => people.map(({ id }) => id)
  const named = {
    owners: wish.owners ?? ids(before.owners),
    contributors: wish.contributors ?? ids(before.contributors),
    approvers: wish.approvers ?? ids(before.approvers),
  }
  return namedPeople(named, await knownPeople(tx, everybodyIn(named)))
}

function defined<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>
}

function assertAllowed(before: Document, after: Document, actor: Actor, { status }: Wish): void {
  if (peopleText(before) !== peopleText(after)) rules.assertOwns(before, actor, 'change its people')
  if (status !== undefined && status !== before.status) {
    rules.assertOwns(before, actor, 'change its status')
  }
  if (before.docNumber !== null && before.product !== after.product) {
    const detail = `Its number ${before.docNumber} is one of ${before.product}; the product stays.`
    throw new Problem('HMD_CONFLICT', detail, {
      errors: [{ pointer: '/product', detail: 'cannot change once the document has a number' }],
    })
  }
}

/** A change is named after its most important part; the row of the audit trail lists all of it. */
export function commandFor(before: Document, after: Document): DocumentCommand {
  const draft = isDraft(before)
  if (before.contentHash !== after.contentHash) {
    return draft ? 'changeDraftContent' : 'changeContent'
  }
  if (before.status !== after.status) return 'changeStatus'
  if (peopleText(before) !== peopleText(after)) return draft ? 'changeDraftPeople' : 'changePeople'
  return draft ? 'editDraft' : 'editDocument'
}
