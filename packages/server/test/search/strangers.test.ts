// What a search answers depends on what its caller may see, and on nothing else: two people who see the same get the same answer,
// whatever is in other people's drafts, and whatever was in drafts and documents that are gone.

import { beforeAll, describe, expect, it } from 'vitest'
import { createDraft, createPublished, ok, personId } from '../documents/people.ts'
import { useServer } from '../support/server.ts'

const server = useServer()

const search = async (query: string, as: string) => {
  const body = await ok<Record<string, unknown>>(server, 'GET', `/api/v2/search?${query}`, { as })
  return { total: body.total, corrected: body.corrected, facets: body.facets, hits: (body.hits as unknown[]).length }
}
const nothing = { total: 0, corrected: false, facets: {}, hits: 0 }

beforeAll(async () => {
  await createDraft(server, 'ada', { title: 'Takeover of Zylophonic', content: 'reorganisation layoffs' })
  await createDraft(server, 'bo', { title: 'My own telescope' })
  await server.work()
  await server.caughtUp()
})

describe("words of other people's drafts", () => {
  it.each(['zylophnic', 'zylophonicc', 'reorganisaton', 'layofs'])('%s is corrected for nobody else', async (word) => {
    expect(await search(`index=drafts&q=${word}`, 'stranger')).toEqual(nothing)
    expect(await search(`index=drafts&q=${word}`, 'bo')).toEqual(nothing)
    expect(await search(`index=drafts&q=${word}`, 'ada')).toMatchObject({ hits: 1, corrected: true })
  })

  it('the beginning of one is completed for nobody else', async () => {
    expect(await search('index=drafts&q=reorganisati', 'stranger')).toEqual(nothing)
    expect(await search('index=drafts&q=zylop', 'bo')).toEqual(nothing)
  })

  it('do not crowd out the words of the caller', async () => {
    const letters = 'abcdefghijklmnopqrstuvwxyz'
    const close = [...letters].flatMap((a) => [`telescpo${a}`, `telescp${a}e`, `tel${a}scpoe`])
    await createDraft(server, 'ada', { title: 'Noise', content: close.join(' ') })
    await server.caughtUp()
    expect(await search('index=drafts&q=telescpoe', 'bo')).toMatchObject({ hits: 1, corrected: true })
  })
})

describe('what is gone', () => {
  it('leaves no words: neither a draft nor a document', async () => {
    const draft = await createDraft(server, 'ada', { title: 'Quixotry one' })
    const document = await createPublished(server, 'ada', { title: 'Borborygmus one' })
    await server.caughtUp()
    expect(await search('index=drafts&q=quixotyr', 'ada')).toMatchObject({ hits: 1, corrected: true })
    expect(await search('q=borborygmsu', 'bo')).toMatchObject({ hits: 1, corrected: true })
    await ok(server, 'DELETE', `/api/v2/drafts/${draft.id}`, { as: 'ada', version: 1 }, 204)
    await ok(server, 'DELETE', `/api/v2/documents/${document.id}`, { as: 'ada', version: 1 }, 204)
    await server.caughtUp()
    expect(await search('index=drafts&q=quixotyr', 'ada')).toEqual(nothing)
    expect(await search('q=borborygmsu', 'bo')).toEqual(nothing)
  })

  it('is not counted, even before the index knows', async () => {
    const cy = await personId(server, 'cy')
    const { id } = await createDraft(server, 'ada', { title: 'Handed out', contributors: [cy], tags: ['secret'] })
    await createDraft(server, 'cy', { title: 'Handed in', tags: ['own'] })
    await server.caughtUp()
    const both = 'index=drafts&q=handed&facets=tags'
    expect(await search(both, 'cy')).toMatchObject({ total: 2, hits: 2 })
    const by = { actor: 'test', reason: 'the index lags' }
    await server.platform.outbox.pause('search-drafts', by)
    await ok(server, 'PATCH', `/api/v2/drafts/${id}`, { as: 'ada', version: 1, body: { contributors: [] } })
    const own = { total: 1, corrected: false, hits: 1, facets: { tags: [{ value: 'own', count: 1 }] } }
    expect(await search(both, 'cy')).toEqual(own)
    expect(await search(`${both}&limit=0`, 'cy')).toEqual({ ...own, hits: 0 })
    expect(await search(`${both}&offset=1`, 'cy')).toEqual({ ...own, hits: 0 })
    // Completed by the word of their own draft.
    expect(await search('index=drafts&q=hande&facets=tags', 'cy')).toEqual({ ...own, corrected: true })
    expect(await search('index=drafts&q=outt', 'cy')).toMatchObject({ total: 0, corrected: false })
    await server.platform.outbox.resume('search-drafts', by)
  })
})
