/**
 * What may happen to a document, and who may do it. Pure: given a document and a wish, either the
 * new state or a refusal that says what is allowed.
 *
 *   WIP ──publish──▶ In-Review ──all approved──▶ Approved
 *                      ▲  │  ▲                     │  │
 *                      │  │  └─words, approvers────┘  │
 *                      │  └────▶ Obsolete ◀───────────┘
 *                      └─────────────┘
 */
import type { Principal } from '../actor.ts'
import { notFound, Problem } from '../problems.ts'
import { fieldChanges } from './changes.ts'
import {
  type Approval,
  type Decision,
  type Document,
  insidersOf,
  isDraft,
  type PersonRef,
  type Status,
} from './document.ts'

/** Where a person may send a document. Approved is reached by approvals, WIP never again. */
const transitions: Readonly<Record<Status, readonly Status[]>> = {
  WIP: [],
  'In-Review': ['Obsolete'],
  Approved: ['In-Review', 'Obsolete'],
  Obsolete: ['In-Review'],
}

export type Who = Pick<Principal, 'personId' | 'role'>
export type Review = Pick<Document, 'status' | 'approvals'>

export function isOwner({ owners }: Pick<Document, 'owners'>, { personId }: Who): boolean {
  return owners.some(({ id }) => id === personId)
}

/** Drafts are seen by those who write them, whatever the role; published ones by everybody. */
export function maySee(document: Document, { personId }: Who): boolean {
  return !isDraft(document) || (personId !== null && insidersOf(document).includes(personId))
}

/** A document you may not see is reported as not found. */
export function assertSees(document: Document | undefined, who: Who): asserts document is Document {
  if (document === undefined || !maySee(document, who)) throw notFound('document with this id')
}

/** Owners and contributors change what is written; an admin too, where they see it. */
export function assertEdits(document: Document, who: Who): void {
  assertSees(document, who)
  if (who.role === 'admin') return
  if (who.personId !== null && insidersOf(document).includes(who.personId)) return
  throw new Problem('HMD_FORBIDDEN', 'Only its owners and contributors may change this document.')
}

/** Owners decide about people, publishing, status and deletion; an admin too, where they see it. */
export function assertOwns(document: Document, who: Who, doing: string): void {
  assertSees(document, who)
  if (who.role === 'admin' || isOwner(document, who)) return
  throw new Problem('HMD_FORBIDDEN', `Only its owners may ${doing}.`)
}

/** The review after somebody set the status by hand; a new round forgets the decisions of the last. */
export function changeStatus({ status, approvals }: Review, to: Status): Review {
  if (status === to) return { status, approvals }
  const allowed = transitions[status]
  if (allowed.includes(to)) {
    return { status: to, approvals: to === 'In-Review' ? [] : approvals }
  }
  throw new Problem('HMD_TRANSITION_ILLEGAL', refusal(status, to, allowed), {
    facts: { status, allowed },
  })
}

function refusal(from: Status, to: Status, allowed: readonly Status[]): string {
  const ways = allowed.length === 0 ? 'nothing' : allowed.join(' or ')
  const hint =
    to === 'Approved'
      ? ' It becomes Approved when all approvers have approved.'
      : from === 'WIP'
        ? ' Publish it: POST /api/v2/reviews/{id}.'
        : ''
  return `${from} cannot become ${to}; from here it may become ${ways}.${hint}`
}

/** A draft goes out for review; decisions made on anything before do not count. */
export function publish(document: Document): Review {
  if (isDraft(document)) return { status: 'In-Review', approvals: [] }
  const { status } = document
  throw new Problem('HMD_TRANSITION_ILLEGAL', `It is published already and ${status}.`, {
    facts: { status, allowed: transitions[status] },
  })
}

/** Content, title, summary and custom fields are what a review is about; tags and types are labels. */
function wordsChanged(before: Document, after: Document): boolean {
  const fields = Object.keys(fieldChanges(before, after))
  return fields.some((field) => reviewed.has(field) || field.startsWith('customFields.'))
}

const reviewed: ReadonlySet<string> = new Set(['content', 'title', 'summary'])

/**
 * What an edit does to the review: nobody has approved the new words, so every decision is
 * removed. The decision of a removed approver is removed too, and a new approver has to
 * decide. An edit never makes a document Approved.
 */
export function reviewAfterEdit(before: Document, after: Document): Review {
  if (wordsChanged(before, after)) {
    return { status: reopened(after.status), approvals: [] }
  }
  const { status, approvers } = after
  const approvals = after.approvals.filter((one) => approvers.some(({ id }) => id === one.personId))
  const grew = approvers.some(({ id }) => !before.approvers.some((other) => other.id === id))
  return { status: grew ? reopened(status) : status, approvals }
}

/** Who wrote what is there after an edit. What was approved is settled: the next round begins with whoever goes on. */
export function authorsAfter(before: Document, after: Document, by: PersonRef | null): readonly PersonRef[] {
  const { authors, status } = before
  if (by === null || !wordsChanged(before, after)) return authors
  if (status === 'Approved') return [by]
  return authors.some(({ id }) => id === by.id) ? authors : [...authors, by]
}

function reopened(status: Status): Status {
  return status === 'Approved' ? 'In-Review' : status
}

export interface Verdict {
  readonly personId: string
  readonly comment: string
  readonly at: Date
}

/** POST: a first decision, or a new one after changes were requested. */
export function approve(document: Document, verdict: Verdict): Review {
  assertMayDecide(document, verdict.personId)
  const own = decisionOf(document, verdict.personId)
  if (own?.decision === 'approved') {
    throw new Problem('HMD_ALREADY_DECIDED', 'You have approved it; PATCH changes the comment.')
  }
  assertStatus(document, ['In-Review'])
  return decided(document, 'approved', verdict)
}

/** DELETE: asks for changes, also where the document was Approved before. */
export function requestChanges(document: Document, verdict: Verdict): Review {
  assertMayDecide(document, verdict.personId)
  assertStatus(document, ['In-Review', 'Approved'])
  const own = decisionOf(document, verdict.personId)
  if (own?.decision === 'changes-requested') {
    throw new Problem('HMD_ALREADY_DECIDED', 'You have requested changes; PATCH changes the comment.')
  }
  return decided(document, 'changes-requested', verdict)
}

/** PATCH: another decision, another comment, or both; there must be one to change. */
export function changeDecision(
  document: Document,
  verdict: Omit<Verdict, 'comment'> & { readonly decision?: Decision; readonly comment?: string },
): Review {
  assertMayDecide(document, verdict.personId)
  assertStatus(document, ['In-Review', 'Approved'])
  const own = decisionOf(document, verdict.personId)
  if (own === undefined) {
    throw new Problem('HMD_NOT_DECIDED', 'You have not decided yet: POST approves, DELETE refuses.')
  }
  const { decision = own.decision, comment = own.comment } = verdict
  return decided(document, decision, { ...verdict, comment })
}

/** An owner is told that they cannot approve, listed or not; the others only if they are listed. */
function assertMayDecide(document: Document, personId: string): void {
  const share = shareIn(document, personId)
  const listed = document.approvers.some(({ id }) => id === personId)
  if (share !== undefined && (listed || share === 'own it')) {
    throw new Problem('HMD_OWN_DOCUMENT', `Nobody decides about their own document, and you ${share}.`)
  }
  if (listed) return
  throw new Problem('HMD_NOT_APPROVER', 'Only those listed as its approvers decide about it.')
}

/** What makes it a person's own document; undefined for those who may decide. */
function shareIn({ owners, contributors, createdBy, authors }: Document, personId: string): string | undefined {
  const among = (people: readonly PersonRef[]) => people.some(({ id }) => id === personId)
  if (among(owners)) return 'own it'
  if (among(contributors)) return 'contribute to it'
  if (among([createdBy])) return 'created it'
  return among(authors) ? 'wrote what is there now' : undefined
}

function assertStatus({ status }: Document, needed: readonly Status[]): void {
  if (needed.includes(status)) return
  const detail = `It is ${status}; this needs ${needed.join(' or ')}.`
  throw new Problem('HMD_NOT_IN_REVIEW', detail, { facts: { status } })
}

function decisionOf({ approvals }: Document, personId: string): Approval | undefined {
  return approvals.find((approval) => approval.personId === personId)
}

/** Approved as soon as every approver who may decide has approved; back as soon as one has not. */
function decided(document: Document, decision: Decision, verdict: Verdict): Review {
  const { personId, comment, at } = verdict
  const own = { personId, decision, comment, decidedAt: at }
  const others = document.approvals.filter((approval) => approval.personId !== personId)
  const approvals = [...others, own]
  const approved = new Set(approvals.filter((one) => one.decision === 'approved').map((one) => one.personId))
  const asked = document.approvers.filter(({ id }) => shareIn(document, id) === undefined)
  const status = asked.every(({ id }) => approved.has(id)) ? 'Approved' : 'In-Review'
  return { status, approvals }
}
