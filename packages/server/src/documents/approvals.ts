/** Decisions about documents: approve, change a decision, request changes. */
import type { Actor } from '../actor.ts'
import type { DocumentCommand } from '../events.ts'
import type { Platform, Tx } from '../platform.ts'
import { Problem } from '../problems.ts'
import { assertVersion } from '../version-tags.ts'
import type { Decision, Document } from './document.ts'
import { openTarget, type Target } from './open.ts'
import * as rules from './rules.ts'
import { saveChange } from './write.ts'

export type Deciding = Pick<Target, 'id' | 'seen'>

export function approve(platform: Platform, tx: Tx, actor: Actor, target: Deciding, comment = ''): Promise<Document> {
  return decide(platform, tx, actor, target, (document, personId, at) =>
    rules.approve(document, { personId, comment, at }),
  )
}

export function requestChanges(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  target: Deciding,
  comment = '',
): Promise<Document> {
  return decide(platform, tx, actor, target, (document, personId, at) =>
    rules.requestChanges(document, { personId, comment, at }),
  )
}

export function changeDecision(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  target: Deciding,
  wish: { readonly decision?: Decision; readonly comment?: string },
): Promise<Document> {
  return decide(platform, tx, actor, target, (document, personId, at) =>
    rules.changeDecision(document, { personId, at, ...wish }),
  )
}

async function decide(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  { id, seen }: Deciding,
  rule: (document: Document, personId: string, at: Date) => rules.Review,
): Promise<Document> {
  const {
    document: before,
    at,
    logId,
    by,
  } = await openTarget(tx, actor, {
    id,
    seen,
    kind: 'document',
  })
  const { personId } = actor
  if (personId === null) throw new Problem('HMD_NOT_APPROVER', 'Only people decide.')
  const review = rule(before, personId, at)
  assertVersion(seen, before.version)
  const own = review.approvals.find((approval) => approval.personId === personId)
  const command: DocumentCommand = own?.decision === 'approved' ? 'approve' : 'requestChanges'
  const after = { ...before, ...review, modifiedAt: at, lastModifiedBy: by }
  return saveChange(platform, tx, actor, { command, before, after, logId })
}
