// Who may do what with documents, over HTTP; and what happens to requests that are not in order.

import { describe, expect, it } from 'vitest'
import { useServer } from '../support/server.ts'
import { createDraft, createPublished, example, ok, personId } from './people.ts'

const server = useServer()

const codeOf = async (...asked: Parameters<typeof server.ask>) => {
  const answer = await server.ask(...asked)
  return `${answer.statusCode} ${answer.statusCode < 400 ? '' : answer.json().code}`.trim()
}

describe('a draft', () => {
  it('is there for owners and contributors, and for nobody else, admins included', async () => {
    const helper = await personId(server, 'helper')
    const approver = await personId(server, 'approver')
    const { id } = await createDraft(server, 'ada', {
      contributors: [helper],
      approvers: [approver],
    })
    const url = `/api/v2/drafts/${id}`
    const seen = async (as: string, role: 'editor' | 'admin' = 'editor') => [
      await codeOf('GET', url, { as, role }),
      await codeOf('GET', `/api/v2/documents/${id}/history`, { as, role }),
      await codeOf('GET', `/api/v2/documents/${id}/sync`, { as, role }),
    ]
    expect(await seen('ada')).toEqual(['200', '200', '200'])
    expect(await seen('helper')).toEqual(['200', '200', '200'])
    const nothing = Array(3).fill('404 HMD_NOT_FOUND')
    for (const name of ['approver', 'stranger']) expect(await seen(name), name).toEqual(nothing)
    expect(await seen('boss', 'admin')).toEqual(nothing)
    for (const method of ['PATCH', 'DELETE'] as const) {
      const body = method === 'PATCH' ? { body: { title: 'Mine' } } : {}
      expect(await codeOf(method, url, { as: 'stranger', version: 1, ...body })).toMatch(/^404/)
    }
    expect(await codeOf('POST', `/api/v2/reviews/${id}`, { as: 'stranger', version: 1 })).toMatch(/^404/)
    const mine = await ok<{ items: { id: string }[] }>(server, 'GET', '/api/v2/drafts', {
      as: 'stranger',
    })
    expect(mine.items).toEqual([])
  })

  it('is written by contributors, decided about by owners', async () => {
    const helper = await personId(server, 'helper')
    const { id } = await createDraft(server, 'ada', { contributors: [helper] })
    const as = 'helper'
    const url = `/api/v2/drafts/${id}`
    expect(await codeOf('PATCH', url, { as, version: 1, body: { content: 'More' } })).toBe('200')
    const own = { contributors: [], owners: [helper] }
    expect(await codeOf('PATCH', url, { as, version: 2, body: own })).toBe('403 HMD_FORBIDDEN')
    expect(await codeOf('DELETE', url, { as, version: 2 })).toBe('403 HMD_FORBIDDEN')
    expect(await codeOf('POST', `/api/v2/reviews/${id}`, { as, version: 2 })).toBe('403 HMD_FORBIDDEN')
  })

  it('and a document are two addresses of one thing', async () => {
    const draft = await createDraft(server, 'ada')
    const at = (kind: string) => codeOf('GET', `/api/v2/${kind}/${draft.id}`, { as: 'ada' })
    expect([await at('drafts'), await at('documents')]).toEqual(['200', '404 HMD_NOT_FOUND'])
    await ok(server, 'POST', `/api/v2/reviews/${draft.id}`, { as: 'ada', version: 1 })
    expect([await at('drafts'), await at('documents')]).toEqual(['404 HMD_NOT_FOUND', '200'])
    expect(await codeOf('POST', `/api/v2/reviews/${draft.id}`, { as: 'ada', version: 2 })).toBe(
      '409 HMD_TRANSITION_ILLEGAL',
    )
  })
})

describe('a published document', () => {
  it('is read by everybody, changed by its people and admins', async () => {
    const helper = await personId(server, 'helper')
    const { id } = await createPublished(server, 'ada', { contributors: [helper] })
    const url = `/api/v2/documents/${id}`
    const body = { title: 'Other' }
    expect(await codeOf('GET', url, { as: 'reader', role: 'reader' })).toBe('200')
    expect(await codeOf('PATCH', url, { as: 'reader', role: 'reader', version: 1, body })).toBe('403 HMD_FORBIDDEN')
    expect(await codeOf('PATCH', url, { as: 'stranger', version: 1, body })).toBe('403 HMD_FORBIDDEN')
    expect(await codeOf('PATCH', url, { as: 'helper', version: 1, body })).toBe('200')
    const obsolete = { status: 'Obsolete', content: 'sneaked past' }
    expect(await codeOf('PATCH', url, { as: 'helper', version: 2, body: obsolete })).toBe('403 HMD_FORBIDDEN')
    expect(await codeOf('DELETE', url, { as: 'helper', version: 2 })).toBe('403 HMD_FORBIDDEN')
    expect(await codeOf('DELETE', url, { as: 'boss', role: 'admin', version: 2 })).toBe('204')
  })

  it('keeps its product, names the allowed statuses, and replaces as a whole', async () => {
    const { id } = await createPublished(server, 'ada', { summary: 'S', tags: ['t'] })
    const url = `/api/v2/documents/${id}`
    expect(await codeOf('PATCH', url, { as: 'ada', version: 1, body: { product: 'B' } })).toBe('409 HMD_CONFLICT')
    const illegal = await server.ask('PATCH', url, {
      as: 'ada',
      version: 1,
      body: { status: 'Approved' },
    })
    expect(illegal.json()).toMatchObject({
      status: 409,
      code: 'HMD_TRANSITION_ILLEGAL',
      allowed: ['Obsolete'],
    })
    const owners = [await personId(server, 'ada')]
    const replaced = await ok(server, 'PUT', url, {
      as: 'ada',
      version: 1,
      body: { ...example, title: 'Whole', owners },
    })
    expect(replaced).toMatchObject({ title: 'Whole', summary: '', tags: [], version: '2' })
  })

  it('registered from outside belongs to one file, once', async () => {
    const file = { workspaceProvider: 'google', providerFileId: 'file-1' }
    const made = await createPublished(server, 'ada', file)
    expect(made).toMatchObject(file)
    const again = await server.ask('POST', '/api/v2/documents', {
      as: 'bo',
      body: { ...example, ...file },
    })
    expect(again.json()).toMatchObject({ status: 409, code: 'HMD_FILE_REGISTERED' })
    expect(again.body).not.toContain(made.id)
    const post = (body: object, role: 'editor' | 'operator' = 'editor') =>
      codeOf('POST', '/api/v2/documents', { as: 'ada', role, body: { ...example, ...body } })
    expect(await post({ workspaceProvider: 's3' })).toBe('400 HMD_REQUEST_INVALID')
    expect(await post({ workspaceProvider: 'local', providerFileId: 'x' })).toMatch(/^400/)
    expect(await post({ status: 'Approved' })).toBe('403 HMD_FORBIDDEN')
    expect(await post({ status: 'Approved' }, 'operator')).toBe('201')
  })
})

describe('approvals, over HTTP', () => {
  it('refuse with their own codes, and forget when the content changes', async () => {
    const approver = await personId(server, 'approver')
    const { id } = await createPublished(server, 'ada', { approvers: [approver] })
    const url = `/api/v2/approvals/${id}`
    const post = (as: string, version: number) => codeOf('POST', url, { as, version, body: { comment: 'Good' } })
    expect(await post('ada', 1)).toBe('403 HMD_OWN_DOCUMENT')
    expect(await post('stranger', 1)).toBe('403 HMD_NOT_APPROVER')
    expect(await codeOf('PATCH', url, { as: 'approver', version: 1, body: { comment: '' } })).toBe(
      '409 HMD_NOT_DECIDED',
    )
    expect(await codeOf('POST', url, { as: 'approver' }), 'which version?').toMatch(/^428/)
    expect(await post('approver', 7)).toBe('412 HMD_VERSION_STALE')
    expect(await post('approver', 1)).toBe('200')
    expect(await post('approver', 2)).toBe('409 HMD_ALREADY_DECIDED')
    const document = `/api/v2/documents/${id}`
    const edited = await ok(server, 'PATCH', document, {
      as: 'ada',
      version: 2,
      body: { content: 'Something else' },
    })
    expect(edited).toMatchObject({ status: 'In-Review', approvals: [] })
    const refused = await ok(server, 'DELETE', url, { as: 'approver', version: 3 })
    expect(refused).toMatchObject({ approvals: [{ decision: 'changes-requested', comment: '' }] })
    const changed = { decision: 'approved', comment: 'Now yes' }
    expect(await ok(server, 'PATCH', url, { as: 'approver', version: 4, body: changed })).toMatchObject({
      status: 'Approved',
      approvals: [changed],
    })
    await ok(server, 'PATCH', document, { as: 'ada', version: 5, body: { status: 'Obsolete' } })
    expect(await codeOf('DELETE', url, { as: 'approver', version: 6 })).toBe('409 HMD_NOT_IN_REVIEW')
  })
})

describe('bad input', () => {
  const post = (body: object) => server.ask('POST', '/api/v2/drafts', { as: 'ada', body })

  it.each<[string, object, number, string]>([
    ['nothing', {}, 400, '/title'],
    ['an unknown field', { ...example, titel: 'x' }, 400, '/titel'],
    ['a status', { ...example, status: 'Approved' }, 400, '/status'],
    ['a long title', { ...example, title: 'x'.repeat(501) }, 400, '/title'],
    ['a number as title', { ...example, title: 7 }, 400, '/title'],
    ['NUL', { ...example, content: 'a\0b' }, 400, '/content'],
    ['half a surrogate pair', { ...example, tags: ['\ud800'] }, 400, '/tags/0'],
    ['nested custom fields', { ...example, customFields: { a: { b: 1 } } }, 400, '/customFields/a'],
    ['a bad custom name', { ...example, customFields: { 'a b': 1 } }, 400, '/customFields/a b'],
    ['unknown people', { ...example, approvers: ['999999'] }, 422, '/approvers/0'],
    ['a person twice', { ...example, approvers: ['1', '1'] }, 400, '/approvers'],
    ['no owner', { ...example, owners: [] }, 400, '/owners'],
  ])('%s is refused by name, and nothing is written', async (_, body, status, pointer) => {
    const before = await server.db.query('select count(*)::int as n from hermod.document')
    const answer = await post(body)
    expect(answer.statusCode, answer.body).toBe(status)
    const { errors } = answer.json<{ errors: { pointer: string }[] }>()
    expect(errors.map((error) => error.pointer)).toContain(pointer)
    expect(await server.db.query('select count(*)::int as n from hermod.document')).toEqual(before)
  })

  it('an owner who approves, and a draft nobody here would see, break rules', async () => {
    const ada = await personId(server, 'ada')
    const bo = await personId(server, 'bo')
    expect((await post({ ...example, approvers: [ada] })).json()).toMatchObject({
      status: 422,
      code: 'HMD_RULE_BROKEN',
      errors: [{ pointer: '/approvers/0' }],
    })
    expect((await post({ ...example, owners: [bo] })).statusCode).toBe(422)
  })

  it('versions are needed, and stale ones say which is current', async () => {
    const { id } = await createDraft(server, 'ada')
    const url = `/api/v2/drafts/${id}`
    const body = { title: 'Next' }
    expect(await codeOf('PATCH', url, { as: 'ada', body })).toBe('428 HMD_VERSION_NEEDED')
    await ok(server, 'PATCH', url, { as: 'ada', version: 1, body })
    const stale = await server.ask('PATCH', url, { as: 'ada', version: 1, body })
    expect(stale.json()).toMatchObject({ status: 412, currentVersion: '2' })
    // Nothing to change leaves no trace.
    const same = await ok(server, 'PATCH', url, { as: 'ada', version: 2, body })
    expect(same.version).toBe('2')
    const headers = { 'if-none-match': '"2"' }
    expect((await server.ask('GET', url, { as: 'ada', headers })).statusCode).toBe(304)
  })

  it('the same key makes one draft', async () => {
    const headers = { 'idempotency-key': '"once"' }
    const asking = { as: 'ada', body: example, headers }
    const first = await server.ask('POST', '/api/v2/drafts', asking)
    const second = await server.ask('POST', '/api/v2/drafts', asking)
    expect(second.json()).toEqual(first.json())
    expect(second.headers['idempotent-replayed']).toBe('true')
    expect(second.headers.location).toBe(`/api/v2/drafts/${first.json().id}`)
  })
})
