// Lists of documents and of what happened to them: filters, pages that stay put, merged people.

import { beforeAll, describe, expect, it } from 'vitest'
import { useServer } from '../support/server.ts'
import { createDraft, createPublished, ok, personId } from './people.ts'

const server = useServer()

interface Page {
  readonly items: readonly { id: string; title: string; version: string; type: string }[]
  readonly nextCursor: string | null
  readonly hasMore: boolean
}

const list = (url: string, as = 'ada', role: 'editor' | 'operator' = 'editor') =>
  ok<Page>(server, 'GET', url, { as, role })
const titles = ({ items }: Page) => items.map(({ title }) => title)

let ada = ''
let bo = ''

beforeAll(async () => {
  ada = await personId(server, 'ada')
  bo = await personId(server, 'bo')
  for (const [n, product] of ['A', 'B', 'A', 'B', 'A'].entries()) {
    const by = n < 3 ? 'ada' : 'bo'
    const file = n === 4 ? { workspaceProvider: 'azure', providerFileId: 'blob-4' } : {}
    await createPublished(server, by, { title: `Doc ${n}`, product, docType: `T${n % 2}`, ...file })
  }
  await createDraft(server, 'ada', { title: 'Draft of Ada' })
})

describe('documents', () => {
  it.each([
    ['', ['Doc 4', 'Doc 3', 'Doc 2', 'Doc 1', 'Doc 0']],
    ['product=A', ['Doc 4', 'Doc 2', 'Doc 0']],
    ['product=A&product=B&docType=T1', ['Doc 3', 'Doc 1']],
    ['provider=azure', ['Doc 4']],
    ['provider=local&status=In-Review&product=B', ['Doc 3', 'Doc 1']],
    ['status=Obsolete', []],
    ['since=2999-01-01T00:00:00Z', []],
  ])('?%s', async (query, expected) => {
    expect(titles(await list(`/api/v2/documents?${query}`))).toEqual(expected)
  })

  it('by owner, and by who changed them last', async () => {
    expect(titles(await list(`/api/v2/documents?owner=${bo}`))).toEqual(['Doc 4', 'Doc 3'])
    const { items } = await list(`/api/v2/documents?person=${ada}`)
    expect(items).toHaveLength(3)
    expect(items[0]).not.toHaveProperty('content')
  })

  it('come in pages that do not shift, by cursors that belong to one list', async () => {
    const first = await list('/api/v2/documents?limit=2')
    expect(titles(first)).toEqual(['Doc 4', 'Doc 3'])
    await createPublished(server, 'ada', { title: 'Newer', product: 'C' })
    const cursor = encodeURIComponent(first.nextCursor ?? '')
    const second = await list(`/api/v2/documents?limit=2&cursor=${cursor}`)
    expect(titles(second)).toEqual(['Doc 2', 'Doc 1'])
    for (const foreign of [`/api/v2/documents?product=A&cursor=${cursor}`, `/api/v2/drafts?cursor=${cursor}`]) {
      const answer = await server.ask('GET', foreign, { as: 'ada' })
      expect(answer.json(), foreign).toMatchObject({ status: 400, code: 'HMD_CURSOR_INVALID' })
    }
  })

  it.each(['limit=0', 'limit=201', 'owner=x', 'status=WIP', 'since=yesterday', 'colour=red', 'product=%00'])(
    '?%s is refused',
    async (query) => {
      const answer = await server.ask('GET', `/api/v2/documents?${query}`, { as: 'ada' })
      expect(answer.json()).toMatchObject({ status: 400, code: 'HMD_REQUEST_INVALID' })
    },
  )
})

describe('the audit trail', () => {
  it('answers by document, file, person, type and time', async () => {
    const audit = (query: string) => list(`/api/v2/audit?${query}`, 'op', 'operator')
    expect((await audit('providerFileId=blob-4')).items).toHaveLength(1)
    expect((await audit(`person=${bo}&type=created`)).items).toHaveLength(2)
    expect((await audit('type=deleted&type=approved')).items).toEqual([])
    expect((await audit('since=2999-01-01T00:00:00Z')).items).toEqual([])
    const page = await audit('limit=1')
    const next = await audit(`limit=1&cursor=${encodeURIComponent(page.nextCursor ?? '')}`)
    expect(BigInt(next.items[0]?.id ?? 0)).toBeLessThan(BigInt(page.items[0]?.id ?? 0))
    expect((await server.ask('GET', '/api/v2/audit', { as: 'ada' })).statusCode).toBe(403)
  })

  it('shows of a foreign draft which fields changed, not what is in them', async () => {
    const { id } = await createDraft(server, 'ada', { title: 'Secret plan' })
    const { items } = await list(`/api/v2/audit?document=${id}`, 'op', 'operator')
    expect(items).toMatchObject([{ redacted: true, changes: { title: {} } }])
    expect(JSON.stringify(items)).not.toContain('Secret plan')
  })

  it('follows merged people: what one did and could see is the other’s now', async () => {
    const old = await personId(server, 'old-login')
    const { id } = await createDraft(server, 'old-login', { title: 'From before' })
    await ok(server, 'DELETE', `/api/v2/drafts/${id}`, { as: 'old-login', version: 1 }, 204)
    const history = `/api/v2/documents/${id}/history`
    expect((await server.ask('GET', history, { as: 'bo' })).statusCode).toBe(404)
    await server.db.query('update hermod.person set merged_into = $1, deleted_at = now() where id = $2', [bo, old])
    const { items } = await list(history, 'bo')
    expect(items.map(({ type }) => type)).toEqual(['deleted', 'created'])
    expect(items[0]).toMatchObject({ person: { id: bo }, recordedPersonId: old })
    const audit = await list(`/api/v2/audit?person=${bo}&type=deleted`, 'op', 'operator')
    expect(audit.items.map((one) => one.version)).toEqual(['2'])
  })
})
