/** What can be done to documents: each command locks, reads, decides, writes, records and tells in one transaction. */
import type { Actor } from '../actor.ts'
import type { WorkspaceProvider } from '../config.ts'
import type { DocumentCommand } from '../events.ts'
import { assertVersion } from '../http/version-tags.ts'
import type { Platform, Tx } from '../platform.ts'
import { invalid, Problem } from '../problems.ts'
import { fieldChanges } from './changes.ts'
import { giveNumbers, hashOf, insertDocuments, type NewDocument } from './create.ts'
import {
  type CustomFields,
  type CustomValue,
  type Document,
  type DocumentFields,
  isDraft,
  type Status,
} from './document.ts'
import {
  brokenRules,
  everybodyIn,
  knownPeople,
  type NamedPeople,
  namedPeople,
} from './named-people.ts'
import { type Opened, openDocument } from './open.ts'
import * as rules from './rules.ts'
import { peopleText, saveChange, saveDeletion } from './write.ts'

/** What a caller gives of a new document; the rest has a default. */
export interface Creation extends Partial<DocumentFields>, Partial<NamedPeople> {
  readonly title: string
  readonly docType: string
  readonly product: string
  readonly status?: Status
  readonly workspaceProvider?: WorkspaceProvider
  readonly providerFileId?: string
}

export async function createDraft(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  creation: Creation,
): Promise<Document> {
  const wanted = complete(platform, actor, { ...creation, status: 'WIP' })
  const insiders = [...wanted.owners, ...wanted.contributors]
  if (!insiders.includes(actor.personId ?? '')) {
    const detail = 'must name you as owner or contributor: nobody else sees a draft'
    throw brokenRules([{ pointer: '/owners', detail }])
  }
  return one(await insertDocuments(platform, tx, actor, [wanted]))
}

/** Without a draft; what was decided elsewhere is taken over only from those who may import. */
export async function createDocument(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  creation: Creation,
): Promise<Document> {
  const { status = 'In-Review' } = creation
  if (status !== 'In-Review' && !actor.permissions.has('import:write')) {
    const detail = `A new document is In-Review; registering it as ${status} needs the permission import:write.`
    throw new Problem('HMD_FORBIDDEN', detail)
  }
  const wanted = complete(platform, actor, { ...creation, status })
  return one(await insertDocuments(platform, tx, actor, [wanted]))
}

function complete(
  { config }: Platform,
  { personId }: Actor,
  creation: Creation & { readonly status: Status },
): NewDocument {
  const { workspaceProvider = config.workspace.provider, providerFileId } = creation
  if (workspaceProvider === 'local' && providerFileId !== undefined) {
    throw invalid('/providerFileId', 'is chosen by the server for local documents; leave it out')
  }
  if (workspaceProvider !== 'local' && providerFileId === undefined) {
    throw invalid('/providerFileId', `is missing: a ${workspaceProvider} document has a file there`)
  }
  return {
    ...{ summary: '', content: '', tags: [], customFields: {} },
    ...{ owners: personId === null ? [] : [personId], contributors: [], approvers: [] },
    ...creation,
    workspaceProvider,
  }
}

function one(documents: readonly Document[]): Document {
  const [document] = documents
  if (document === undefined) throw new Error('one document was made')
  return document
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
  rules.assertSees(opened?.document, actor)
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

/** Fields left out stay as they are. */
export interface Edit extends Partial<Omit<DocumentFields, 'customFields'>>, Partial<NamedPeople> {
  readonly status?: Status
  /** Merged by key; null removes one. */
  readonly customFields?: Readonly<Record<string, CustomValue | null>>
}

export type Replacement = DocumentFields & NamedPeople & { readonly status?: Status }

/** Merges into a draft or a document. An edit that changes nothing leaves no trace. */
export async function edit(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  target: Target,
  edit: Edit,
): Promise<Document> {
  const opened = await openTarget(tx, actor, target)
  const { customFields, ...rest } = edit
  const merged = merge(opened.document.customFields, customFields)
  return change(platform, tx, actor, target, opened, { ...rest, customFields: merged })
}

function merge(fields: CustomFields, changes: Edit['customFields'] = {}): CustomFields {
  const merged = { ...fields, ...changes }
  return Object.fromEntries(
    Object.entries(merged).flatMap(([key, value]) => (value === null ? [] : [[key, value]])),
  )
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
  const edited = await apply(tx, before, wish)
  if (Object.keys(fieldChanges(before, edited)).length === 0) return before
  assertAllowed(before, edited, actor, wish)
  const after = { ...edited, modifiedAt: at, lastModifiedBy: by }
  const named = command ?? commandFor(before, after)
  return saveChange(platform, tx, actor, { command: named, before, after, logId })
}

async function apply(tx: Tx, before: Document, wish: Wish): Promise<Document> {
  const { owners, contributors, approvers, status, ...fields } = wish
  const people = await peopleAfter(tx, before, { owners, contributors, approvers })
  const content = fields.content ?? before.content
  const contentHash = content === before.content ? before.contentHash : hashOf(content)
  const written = { ...before, ...defined(fields), ...people, contentHash }
  const edited = { ...written, ...rules.reviewAfterEdit(before, written) }
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
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as Partial<T>
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

/** One change, one word: what weighs most names it, the row of the audit trail lists it all. */
export function commandFor(before: Document, after: Document): DocumentCommand {
  const draft = isDraft(before)
  if (before.contentHash !== after.contentHash) {
    return draft ? 'changeDraftContent' : 'changeContent'
  }
  if (before.status !== after.status) return 'changeStatus'
  if (peopleText(before) !== peopleText(after)) return draft ? 'changeDraftPeople' : 'changePeople'
  return draft ? 'editDraft' : 'editDocument'
}

/** WIP → In-Review: the draft leaves its index and the document enters the other by one event. */
export async function publish(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  { id, seen }: Pick<Target, 'id' | 'seen'>,
): Promise<Document> {
  const opened = await openDocument(tx, actor, id, seen)
  rules.assertSees(opened?.document, actor)
  const { document: before, at, logId, by } = opened as Opened
  rules.assertOwns(before, actor, 'publish it')
  const review = rules.publish(before)
  assertVersion(seen, before.version)
  const [docNumber = null] = await giveNumbers(tx, [{ product: before.product, ...review }])
  const after = {
    ...{ ...before, ...review, docNumber },
    ...{ publishedAt: at, modifiedAt: at, lastModifiedBy: by },
  }
  return saveChange(platform, tx, actor, { command: 'publish', before, after, logId })
}

export async function remove(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  target: Target,
): Promise<void> {
  const { document: before, logId } = await openTarget(tx, actor, target)
  rules.assertOwns(before, actor, 'delete it')
  assertVersion(target.seen, before.version)
  const command = target.kind === 'draft' ? 'deleteDraft' : 'deleteDocument'
  await saveDeletion(platform, tx, actor, { command, before, logId })
}

/** Content that came from outside, seen by a scan; true = it differed. Nobody is asked for permission. */
export async function takeContent(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  id: string,
  content: string,
): Promise<boolean> {
  const opened = await openDocument(tx, actor, id)
  if (opened === undefined) return false
  const { document: before, at, logId, by } = opened
  const contentHash = hashOf(content)
  if (contentHash === before.contentHash) return false
  const written = { ...before, content, contentHash, modifiedAt: at, lastModifiedBy: by }
  const after = { ...written, ...rules.reviewAfterEdit(before, written) }
  await saveChange(platform, tx, actor, {
    command: commandFor(before, after),
    before,
    after,
    logId,
  })
  return true
}
