/** What can be done to documents: each command locks, reads, decides, writes, records and tells in one transaction. */
import type { Actor } from '../actor.ts'
import type { WorkspaceProvider } from '../config.ts'
import type { Platform, Tx } from '../platform.ts'
import { invalid, Problem } from '../problems.ts'
import { assertVersion } from '../version-tags.ts'
import { giveNumbers, hashOf, insertDocuments, type NewDocument } from './create.ts'
import type { Document, DocumentFields, Status } from './document.ts'
import { commandFor } from './edit.ts'
import { brokenRules, type NamedPeople } from './named-people.ts'
import { type Opened, openDocument, openTarget, type Target } from './open.ts'
import * as rules from './rules.ts'
import { saveChange, saveDeletion } from './write.ts'

/** What a caller gives of a new document; the rest has a default. */
export interface Creation extends Partial<DocumentFields>, Partial<NamedPeople> {
  readonly title: string
  readonly docType: string
  readonly product: string
  readonly status?: Status
  readonly workspaceProvider?: WorkspaceProvider
  readonly providerFileId?: string
}

export async function createDraft(platform: Platform, tx: Tx, actor: Actor, creation: Creation): Promise<Document> {
  const wanted = complete(platform, actor, { ...creation, status: 'WIP' })
  const insiders = [...wanted.owners, ...wanted.contributors]
  if (!insiders.includes(actor.personId ?? '')) {
    const detail = 'must name you as owner or contributor: nobody else sees a draft'
    throw brokenRules([{ pointer: '/owners', detail }])
  }
  return one(await insertDocuments(platform, tx, actor, [wanted]))
}

/** Creates a published document directly. Only people who may import can bring decisions from elsewhere. */
export async function createDocument(platform: Platform, tx: Tx, actor: Actor, creation: Creation): Promise<Document> {
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
    summary: '',
    content: '',
    tags: [],
    customFields: {},
    owners: personId === null ? [] : [personId],
    contributors: [],
    approvers: [],
    ...creation,
    workspaceProvider,
  }
}

function one(documents: readonly Document[]): Document {
  const [document] = documents
  if (document === undefined) throw new Error('one document was made')
  return document
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
    ...before,
    ...review,
    docNumber,
    publishedAt: at,
    modifiedAt: at,
    lastModifiedBy: by,
  }
  return saveChange(platform, tx, actor, { command: 'publish', before, after, logId })
}

export async function remove(platform: Platform, tx: Tx, actor: Actor, target: Target): Promise<void> {
  const { document: before, logId } = await openTarget(tx, actor, target)
  rules.assertOwns(before, actor, 'delete it')
  assertVersion(target.seen, before.version)
  const command = target.kind === 'draft' ? 'deleteDraft' : 'deleteDocument'
  await saveDeletion(platform, tx, actor, { command, before, logId })
}

/** Content that came from outside, seen by a scan, in a document that holds other content. Nobody is asked for permission. */
export function takeContent(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  { document: before, at, logId, by }: Opened,
  content: string,
): Promise<Document> {
  const written = { ...before, content, contentHash: hashOf(content), modifiedAt: at, lastModifiedBy: by }
  const after = {
    ...written,
    ...rules.reviewAfterEdit(before, written),
    authors: rules.authorsAfter(before, written, by),
  }
  return saveChange(platform, tx, actor, { command: commandFor(before, after), before, after, logId })
}
