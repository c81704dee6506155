// The rules of documents: given a document, when somebody wishes something, then the new state or
// a refusal with its code.

import { describe, expect, it } from 'vitest'
import type { Document, PersonRef, Status } from '../../src/documents/document.ts'
import * as rules from '../../src/documents/rules.ts'
import type { Problem } from '../../src/problems.ts'

const at = new Date('2026-11-15T08:00:00Z')
const person = (id: string): PersonRef => ({ id, displayName: `person ${id}` })
const [owner, helper, first, second, stranger] = ['1', '2', '3', '4', '5'].map(person) as [
  ...[PersonRef, PersonRef, PersonRef, PersonRef, PersonRef],
]

/** Owned by 1, helped by 2, to be approved by 3 and 4. */
function given(changes: Partial<Document> = {}): Document {
  const { status = 'In-Review' } = changes
  const draft = status === 'WIP'
  return {
    id: 'd',
    version: '1',
    title: 'T',
    docType: 'RFC',
    product: 'Labs',
    summary: '',
    content: 'old',
    contentHash: 'old',
    tags: [],
    customFields: {},
    approvals: [],
    authors: [],
    owners: [owner],
    contributors: [helper],
    approvers: [first, second],
    workspaceProvider: 'local',
    providerFileId: 'd',
    createdBy: owner,
    lastModifiedBy: owner,
    createdAt: at,
    modifiedAt: at,
    publishedAt: draft ? null : at,
    docNumber: draft ? null : 7,
    status,
    ...changes,
  }
}

const approved = ({ id }: PersonRef) => ({
  personId: id,
  decision: 'approved' as const,
  comment: '',
  decidedAt: at,
})
const verdict = ({ id }: PersonRef) => ({ personId: id, comment: 'said', at })
const who = ({ id }: PersonRef, role: rules.Who['role'] = 'editor') => ({ personId: id, role })

function refused(work: () => unknown): Problem {
  try {
    work()
  } catch (error) {
    return error as Problem
  }
  throw new Error('it was not refused')
}

describe('given a status, when somebody sets another by hand', () => {
  const all: Status[] = ['WIP', 'In-Review', 'Approved', 'Obsolete']
  const legal = ['In-Review>Obsolete', 'Approved>In-Review', 'Approved>Obsolete', 'Obsolete>In-Review']
  const pairs = all.flatMap((from) => all.filter((to) => to !== from).map((to) => [from, to]))

  it.each(pairs as [Status, Status][])('%s → %s', (from, to) => {
    const document = given({ status: from, approvals: [approved(first)] })
    if (legal.includes(`${from}>${to}`)) {
      expect(rules.changeStatus(document, to).status).toBe(to)
      return
    }
    const problem = refused(() => rules.changeStatus(document, to))
    expect(problem).toMatchObject({ code: 'HMD_TRANSITION_ILLEGAL', status: 409 })
    expect(problem.facts.allowed).toEqual(
      legal.filter((way) => way.startsWith(`${from}>`)).map((way) => way.split('>')[1]),
    )
  })

  it('a new round begins without decisions, an end keeps them', () => {
    const document = given({ status: 'Approved', approvals: [approved(first)] })
    expect(rules.changeStatus(document, 'In-Review').approvals).toEqual([])
    expect(rules.changeStatus(document, 'Obsolete').approvals).toHaveLength(1)
  })
})

describe('publishing', () => {
  it('given a draft, then it is In-Review without decisions', () => {
    const draft = given({ status: 'WIP', approvals: [approved(first)] })
    expect(rules.publish(draft)).toEqual({ status: 'In-Review', approvals: [] })
  })

  it('given a published one, then it is refused', () => {
    expect(refused(() => rules.publish(given())).code).toBe('HMD_TRANSITION_ILLEGAL')
  })
})

describe('deciding', () => {
  it('one of two approves: still In-Review; the other too: Approved', () => {
    const half = rules.approve(given(), verdict(first))
    expect(half.status).toBe('In-Review')
    const whole = rules.approve({ ...given(), ...half }, verdict(second))
    expect(whole.status).toBe('Approved')
    expect(whole.approvals.map(({ personId }) => personId)).toEqual(['3', '4'])
  })

  it('a request for changes holds it, and takes Approved back', () => {
    const both = given({ status: 'Approved', approvals: [approved(first), approved(second)] })
    const after = rules.requestChanges(both, verdict(second))
    expect(after.status).toBe('In-Review')
    expect(after.approvals.at(-1)).toMatchObject({ decision: 'changes-requested', comment: 'said' })
    // Changed minds count.
    expect(rules.approve({ ...both, ...after }, verdict(second)).status).toBe('Approved')
  })

  it('a changed comment keeps the decision, a changed decision keeps the comment', () => {
    const document = given({ approvals: [{ ...approved(first), comment: 'before' }] })
    const wish = { personId: first.id, at }
    expect(rules.changeDecision(document, { ...wish, comment: 'after' }).approvals).toMatchObject([
      { decision: 'approved', comment: 'after' },
    ])
    const other = { ...wish, decision: 'changes-requested' as const }
    expect(rules.changeDecision(document, other).approvals).toMatchObject([
      { decision: 'changes-requested', comment: 'before' },
    ])
  })

  it('an owner who became an approver by a merge is not waited for', () => {
    const document = given({ approvers: [owner, first] })
    expect(rules.approve(document, verdict(first)).status).toBe('Approved')
  })

  it.each<[string, Document, (document: Document) => unknown, string, number]>([
    ['the owner', given(), (d) => rules.approve(d, verdict(owner)), 'HMD_OWN_DOCUMENT', 403],
    [
      ...(['an owner who is listed', given({ approvers: [owner] })] as const),
      ...([(d: Document) => rules.approve(d, verdict(owner)), 'HMD_OWN_DOCUMENT', 403] as const),
    ],
    [
      ...(['a helper who is listed', given({ approvers: [helper] })] as const),
      ...([(d: Document) => rules.approve(d, verdict(helper)), 'HMD_OWN_DOCUMENT', 403] as const),
    ],
    [
      ...(['the creator', given({ createdBy: first })] as const),
      ...([(d: Document) => rules.approve(d, verdict(first)), 'HMD_OWN_DOCUMENT', 403] as const),
    ],
    [
      ...(['an author', given({ authors: [first] })] as const),
      ...([(d: Document) => rules.approve(d, verdict(first)), 'HMD_OWN_DOCUMENT', 403] as const),
    ],
    ['a stranger', given(), (d) => rules.approve(d, verdict(stranger)), 'HMD_NOT_APPROVER', 403],
    ['a helper', given(), (d) => rules.requestChanges(d, verdict(helper)), 'HMD_NOT_APPROVER', 403],
    [
      ...(['an obsolete one', given({ status: 'Obsolete' })] as const),
      ...([(d: Document) => rules.approve(d, verdict(first)), 'HMD_NOT_IN_REVIEW', 409] as const),
    ],
    [
      ...(['twice', given({ approvals: [approved(first)] })] as const),
      ...([(d: Document) => rules.approve(d, verdict(first)), 'HMD_ALREADY_DECIDED', 409] as const),
    ],
    [
      ...(['nothing to change', given()] as const),
      (d) => rules.changeDecision(d, { personId: first.id, at, comment: 'x' }),
      ...(['HMD_NOT_DECIDED', 409] as const),
    ],
  ])('refused: %s', (_, document, work, code, status) => {
    expect(refused(() => work(document))).toMatchObject({ code, status })
  })
})

describe('editing under review', () => {
  const both = given({ status: 'Approved', approvals: [approved(first), approved(second)] })

  it('other content forgets every decision and reopens', () => {
    const after = rules.reviewAfterEdit(both, { ...both, content: 'new', contentHash: 'new' })
    expect(after).toEqual({ status: 'In-Review', approvals: [] })
  })

  it.each([{ title: 'new' }, { summary: 'new' }, { customFields: { team: 'new' } }])('so does %j', (words) => {
    expect(rules.reviewAfterEdit(both, { ...both, ...words })).toEqual({ status: 'In-Review', approvals: [] })
  })

  it.each([{ tags: ['new'] }, { docType: 'PRD' }])('%j forgets nothing', (labels) => {
    const after = rules.reviewAfterEdit(both, { ...both, ...labels })
    expect(after).toEqual({ status: 'Approved', approvals: both.approvals })
  })

  it('authors add up until it is approved; the round after that begins with whoever goes on', () => {
    const wrote = (before: Document, by: PersonRef | null) =>
      rules.authorsAfter(before, { ...before, content: 'n', contentHash: 'n' }, by).map(({ id }) => id)
    expect(wrote(given({ authors: [helper] }), stranger)).toEqual([helper.id, stranger.id])
    expect(wrote(given({ authors: [helper] }), helper)).toEqual([helper.id])
    expect(wrote({ ...both, authors: [helper] }, stranger)).toEqual([stranger.id])
    expect(wrote({ ...both, authors: [helper] }, null)).toEqual([helper.id])
    expect(rules.authorsAfter(given(), { ...given(), tags: ['x'] }, stranger)).toEqual([])
  })

  it('a new approver reopens; one less takes the decision along and approves nothing', () => {
    const more = { ...both, approvers: [first, second, stranger] }
    expect(rules.reviewAfterEdit(both, more).status).toBe('In-Review')
    const open = given({ approvals: [approved(first)] })
    const less = rules.reviewAfterEdit(open, { ...open, approvers: [first] })
    expect(less).toEqual({ status: 'In-Review', approvals: [approved(first)] })
    expect(rules.reviewAfterEdit(both, { ...both, approvers: [first] }).approvals).toHaveLength(1)
  })

  it('an obsolete one stays obsolete', () => {
    const old = given({ status: 'Obsolete' })
    expect(rules.reviewAfterEdit(old, { ...old, contentHash: 'new' }).status).toBe('Obsolete')
  })
})

describe('who may', () => {
  const draft = given({ status: 'WIP' })
  const table: [string, PersonRef, rules.Who['role'], string, string][] = [
    // sees and edits a draft · sees and edits a document; o = owns it, - = not there
    ['owner', owner, 'editor', 'see edit own', 'see edit own'],
    ['contributor', helper, 'editor', 'see edit', 'see edit'],
    ['approver', first, 'editor', '', 'see'],
    ['stranger', stranger, 'editor', '', 'see'],
    ['admin', stranger, 'admin', '', 'see edit own'],
  ]

  it.each(table)('%s', (_, one, role, ofDraft, ofDocument) => {
    const may = (document: Document) => {
      const actor = who(one, role)
      const words: string[] = []
      for (const [word, rule] of [
        ['see', () => rules.assertSees(document, actor)],
        ['edit', () => rules.assertEdits(document, actor)],
        ['own', () => rules.assertOwns(document, actor, 'do it')],
      ] as const) {
        try {
          rule()
          words.push(word)
        } catch (problem) {
          const expected = rules.maySee(document, actor) ? 403 : 404
          expect((problem as Problem).status, word).toBe(expected)
        }
      }
      return words.join(' ')
    }
    expect(may(draft)).toBe(ofDraft)
    expect(may(given())).toBe(ofDocument)
  })

  it('nobody signed in sees no draft', () => {
    expect(rules.maySee(draft, { personId: null, role: 'admin' })).toBe(false)
  })
})
