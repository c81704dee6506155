// Searching through the API: filters, facets, sorting, highlights, pages, and drafts that only
// their people find, even while the index lags behind.

import { beforeAll, describe, expect, it } from 'vitest'
import { createDraft, createPublished, ok, personId } from '../documents/people.ts'
import { useServer } from '../support/server.ts'

const server = useServer()

interface Found {
  readonly hits: readonly {
    id: string
    document: Record<string, unknown>
    highlights: Record<string, { text: string; marked: boolean }[]>
  }[]
  readonly total: number
  readonly facets: Record<string, { value: string; count: number }[]>
  readonly nextOffset: number | null
}

const search = (query: string, as = 'ada') => ok<Found>(server, 'GET', `/api/v2/search?${query}`, { as })
const titles = ({ hits }: Found) => hits.map(({ document }) => document.title)

let helper = ''
let draftId = ''

beforeAll(async () => {
  helper = await personId(server, 'helper')
  const make = (title: string, fields: object) => createPublished(server, 'ada', { title, ...fields })
  await make('Crème brûlée', { product: 'Kitchen', content: 'Burn the sugar <b>slowly</b>' })
  await make('Sugar prices', { product: 'Market', tags: ['finance'], content: 'They rise' })
  await make('Search ranking', { product: 'Market', docType: 'ADR', content: 'No sweets here' })
  const draft = await createDraft(server, 'ada', { title: 'Sugar draft', contributors: [helper] })
  draftId = draft.id
  await server.work()
  await server.caughtUp()
})

describe('documents', () => {
  it('are found by words, without accents, by beginnings, and with a typing error', async () => {
    expect(titles(await search('q=creme%20brulee'))).toEqual(['Crème brûlée'])
    expect(titles(await search('q=rank'))).toEqual(['Search ranking'])
    expect(titles(await search('q=rankign'))).toEqual(['Search ranking'])
    expect(titles(await search('q=market-002'))).toEqual(['Search ranking'])
  })

  it('are narrowed, counted and sorted', async () => {
    const found = await search('q=sugar&facets=product&filter=product:Market')
    expect(titles(found)).toEqual(['Sugar prices'])
    expect(found.facets.product).toEqual(
      expect.arrayContaining([
        { value: 'Kitchen', count: 1 },
        { value: 'Market', count: 1 },
      ]),
    )
    const sorted = await search('sort=-docNumber&filter=product:Market&filter=docNumber>=1')
    expect(titles(sorted)).toEqual(['Search ranking', 'Sugar prices'])
    expect(titles(await search('filter=modifiedAt>=2999-01-01T00:00:00Z'))).toEqual([])
  })

  it('mark what was found as plain text', async () => {
    const { hits } = await search('q=slowly')
    const parts = hits[0]?.highlights.content ?? []
    expect(parts.find(({ marked }) => marked)?.text).toBe('slowly')
    expect(parts.map(({ text }) => text).join('')).toContain('<b>slowly</b>')
  })

  it('come in bounded pages', async () => {
    const first = await search('limit=2&sort=createdAt')
    expect(first).toMatchObject({ total: 3, nextOffset: 2 })
    const second = await search('limit=2&offset=2&sort=createdAt')
    expect(second.nextOffset).toBeNull()
    expect([...titles(first), ...titles(second)]).toHaveLength(3)
  })

  it.each(['limit=101', 'offset=10001', 'index=people', 'filter=people:1', 'sort=title', 'page=2'])(
    '?%s is refused',
    async (query) => {
      const answer = await server.ask('GET', `/api/v2/search?${query}`, { as: 'ada' })
      expect(answer.json()).toMatchObject({ status: 400, code: 'HMD_REQUEST_INVALID' })
    },
  )
})

describe('drafts', () => {
  it('are found by owners and contributors only, admins are no exception', async () => {
    const seen = async (as: string, role: 'editor' | 'admin' = 'editor') =>
      titles(await ok<Found>(server, 'GET', '/api/v2/search?index=drafts&q=sugar', { as, role }))
    expect(await seen('ada')).toEqual(['Sugar draft'])
    expect(await seen('helper')).toEqual(['Sugar draft'])
    expect(await seen('stranger')).toEqual([])
    expect(await seen('boss', 'admin')).toEqual([])
  })

  it('are not shown to whom they were taken from, even before the index knows', async () => {
    const by = { actor: 'test', reason: 'the index lags' }
    await server.platform.outbox.pause('search-drafts', by)
    await ok(server, 'PATCH', `/api/v2/drafts/${draftId}`, {
      as: 'ada',
      version: 1,
      body: { contributors: [] },
    })
    const stored = await server.platform.search.search('drafts', {
      filters: { people: helper },
    })
    expect(stored.hits, 'the index still has it').toHaveLength(1)
    expect(titles(await search('index=drafts&q=sugar', 'helper'))).toEqual([])
    await server.platform.outbox.resume('search-drafts', by)
  })
})

it('an engine that is away is 503, not 500', async () => {
  const { search: engine } = server.platform
  const real = engine.search.bind(engine)
  engine.search = () => Promise.reject(new Error('connection refused at 10.0.0.7'))
  try {
    const answer = await server.ask('GET', '/api/v2/search?q=x', { as: 'ada' })
    expect(answer.json()).toMatchObject({ status: 503, code: 'HMD_UNAVAILABLE' })
    expect(answer.body).not.toContain('10.0.0.7')
    expect(answer.headers['retry-after']).toBe('5')
  } finally {
    engine.search = real
  }
})
