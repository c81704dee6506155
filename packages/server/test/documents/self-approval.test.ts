// Nobody approves what they wrote: not the creator, not a contributor, not whoever wrote what is there now. What was approved stays
// as it was approved: another title, summary or custom field is reviewed again.

import { describe, expect, it } from 'vitest'
import { useServer } from '../support/server.ts'
import { createDraft, createPublished, type Made, ok, personId } from './people.ts'

const server = useServer()

const approve = async (as: string, { id }: { readonly id: string }, role: 'editor' | 'admin' = 'editor') => {
  const current = await ok<Made>(server, 'GET', `/api/v2/documents/${id}`, { as })
  const answer = await server.ask('POST', `/api/v2/approvals/${id}`, { as, role, version: current.version })
  return answer.statusCode === 200 ? answer.json().status : `${answer.statusCode} ${answer.json().code}`
}

const patch = async (
  as: string,
  { id }: { readonly id: string },
  body: object,
  role: 'editor' | 'admin' = 'editor',
) => {
  const { version } = await ok<Made>(server, 'GET', `/api/v2/documents/${id}`, { as })
  return ok(server, 'PATCH', `/api/v2/documents/${id}`, { as, role, version, body })
}

const refused = '403 HMD_OWN_DOCUMENT'

describe('one person alone cannot approve', () => {
  it('what they created for another owner', async () => {
    const [bo, ada] = [await personId(server, 'bo'), await personId(server, 'ada')]
    const made = await createPublished(server, 'bo', { owners: [ada], approvers: [bo] })
    expect(await approve('bo', made)).toBe(refused)
    const draft = await createDraft(server, 'bo', { owners: [ada], contributors: [bo], approvers: [bo] })
    await ok(server, 'POST', `/api/v2/reviews/${draft.id}`, { as: 'ada', version: 1 })
    await patch('ada', draft, { contributors: [] })
    expect(await approve('bo', draft)).toBe(refused)
  })

  it('what they own no longer but contribute to', async () => {
    const [bo, ada] = [await personId(server, 'bo'), await personId(server, 'ada')]
    const made = await createPublished(server, 'bo')
    await patch('bo', made, { owners: [ada], contributors: [bo], approvers: [bo] })
    expect(await approve('bo', made)).toBe(refused)
  })

  it('what they contribute to, whether or not they wrote in it', async () => {
    const [bo, cy] = [await personId(server, 'bo'), await personId(server, 'cy')]
    const made = await createPublished(server, 'ada', { contributors: [bo], approvers: [bo, cy] })
    expect(await approve('bo', made)).toBe(refused)
    await patch('bo', made, { content: 'By Bo' })
    expect(await approve('bo', made)).toBe(refused)
    // Whoever may not decide is not waited for.
    expect(await approve('cy', made)).toBe('Approved')
  })

  it.each([
    ['content', { content: 'By Bo' }],
    ['title', { title: 'By Bo' }],
    ['summary', { summary: 'By Bo' }],
    ['a custom field', { customFields: { team: 'Bo' } }],
  ])('%s of theirs, after they left the contributors', async (_, body) => {
    const bo = await personId(server, 'bo')
    const made = await createPublished(server, 'ada', { contributors: [bo] })
    await patch('bo', made, body)
    await patch('ada', made, { contributors: [], approvers: [bo] })
    expect(await approve('bo', made)).toBe(refused)
    // The change of another person does not make it somebody else's.
    await patch('ada', made, { content: 'A comma by Ada' })
    expect(await approve('bo', made)).toBe(refused)
  })

  it('what they wrote as an administrator', async () => {
    const boss = await personId(server, 'boss')
    const made = await createPublished(server, 'ada', { approvers: [boss] })
    await patch('boss', made, { content: 'By the boss' }, 'admin')
    expect(await approve('boss', made, 'admin')).toBe(refused)
  })

  it('and cannot ask for changes or change a decision either', async () => {
    const bo = await personId(server, 'bo')
    const made = await createPublished(server, 'ada', { contributors: [bo], approvers: [bo] })
    for (const [method, body] of [
      ['DELETE', { comment: 'no' }],
      ['PATCH', { decision: 'approved' }],
    ] as const) {
      const answer = await server.ask(method, `/api/v2/approvals/${made.id}`, { as: 'bo', version: 1, body })
      expect(answer.json()).toMatchObject({ status: 403, code: 'HMD_OWN_DOCUMENT' })
    }
  })
})

describe('who wrote is asked again once others approved it and somebody else went on', () => {
  it('may decide about the next version, not about their own', async () => {
    const [bo, cy] = [await personId(server, 'bo'), await personId(server, 'cy')]
    const made = await createPublished(server, 'ada', { contributors: [bo], approvers: [cy] })
    await patch('bo', made, { content: 'By Bo' })
    expect(await approve('cy', made)).toBe('Approved')
    await patch('ada', made, { contributors: [], approvers: [bo] })
    expect(await approve('bo', made)).toBe(refused)
    await patch('ada', made, { approvers: [cy] })
    expect(await approve('cy', made)).toBe('Approved')
    await patch('ada', made, { content: 'The next one, by Ada', approvers: [bo] })
    expect(await approve('bo', made)).toBe('Approved')
  })
})

describe('an approved document', () => {
  it.each([
    ['content', { content: 'Other' }],
    ['title', { title: 'Other' }],
    ['summary', { summary: 'Other' }],
    ['custom fields', { customFields: { team: 'Other' } }],
  ])('is reviewed again when its %s change', async (_, body) => {
    const cy = await personId(server, 'cy')
    const made = await createPublished(server, 'ada', { approvers: [cy] })
    expect(await approve('cy', made)).toBe('Approved')
    expect(await patch('ada', made, body)).toMatchObject({ status: 'In-Review', approvals: [] })
    expect(await approve('cy', made)).toBe('Approved')
  })

  it('stays approved when its tags change', async () => {
    const cy = await personId(server, 'cy')
    const made = await createPublished(server, 'ada', { approvers: [cy] })
    await approve('cy', made)
    expect(await patch('ada', made, { tags: ['new'] })).toMatchObject({ status: 'Approved' })
  })

  it('half approved: a changed title needs the first approver again', async () => {
    const [cy, di] = [await personId(server, 'cy'), await personId(server, 'di')]
    const made = await createPublished(server, 'ada', { approvers: [cy, di] })
    expect(await approve('cy', made)).toBe('In-Review')
    await patch('ada', made, { title: 'Other' })
    expect(await approve('di', made)).toBe('In-Review')
    expect(await approve('cy', made)).toBe('Approved')
  })
})
