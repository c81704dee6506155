// What is particular to Meilisearch: ids and values of any kind, older servers, what is not sent
// twice, and its options.

import { beforeEach, describe, expect, it } from 'vitest'
import { documentHash } from '../../src/sinks/search/index.ts'
import { meilisearchOverHttp } from '../../src/sinks/search/meilisearch/api.ts'
import { primaryKeyOf } from '../../src/sinks/search/meilisearch/document.ts'
import { type Meilisearch, meilisearch } from '../../src/sinks/search/meilisearch.ts'
import type { MeilisearchDouble } from '../support/meilisearch/double.ts'
import { Refusal } from '../support/meilisearch/double-store.ts'
import { definition, isWrite, names, openIndex, titled, wider } from '../support/meilisearch/open-index.ts'

let double: MeilisearchDouble
let engine: Meilisearch

beforeEach(async () => {
  ;({ double, engine } = await openIndex())
})

describe('documents', () => {
  const ids = ['plain', 'hermod-x', 'ß/ü?', ' ', 'A', 'a', '.', '..', '%2F', 'x'.repeat(511), 'ü'.repeat(250)]

  it('any id works, and none is taken for another', async () => {
    await engine.upsert(
      'documents',
      ids.map((id, at) => titled(id, at + 1)),
    )
    expect(await engine.count('documents')).toBe(ids.length)
    for (const id of ids) expect((await engine.get('documents', id))?.id).toBe(id)
    const { documents } = await engine.scan('documents')
    expect(documents.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    expect(new Set(ids.map(primaryKeyOf)).size).toBe(ids.length)
    for (const id of ids) expect(primaryKeyOf(id)).toMatch(/^[A-Za-z0-9_-]{1,511}$/)
    await engine.delete(
      'documents',
      ids.map((id) => ({ id, version: 99n })),
    )
    expect(await engine.count('documents')).toBe(0)
  })

  it('half a surrogate pair does not spoil a batch, and our names are kept', async () => {
    const half = { id: 'half', version: 1n, json: '{"title":"a\\ud800b"}' }
    const ours = { id: 'ours', version: 2n, json: '{"hermod_id":"x"}' }
    const number = { id: 'number', version: 3n, json: '{"huge":1e999}' }
    expect(names(await engine.upsert('documents', [half, titled('a', 4), ours]))).toEqual([
      'delivered',
      'delivered',
      'rejected',
    ])
    expect((await engine.get('documents', 'half'))?.document.title).toBe('a\ufffdb')
    expect(names(await engine.upsert('documents', [titled('b', 5), number]))).toEqual(['split', 'split'])
    // The server does not say which one it was: only after another one has passed it is certain.
    expect(names(await engine.upsert('documents', [number]))).toEqual(['retry'])
    expect(names(await engine.upsert('documents', [titled('b', 5)]))).toEqual(['delivered'])
    expect(names(await engine.upsert('documents', [number]))).toEqual(['rejected'])
  })

  it('a bulk is compressed; settings that are there are not sent again', async () => {
    await engine.upsert('documents', [titled('long', 1, 'word '.repeat(2_000))])
    expect(double.requests.find(isWrite)?.headers['content-encoding']).toBe('gzip')
    const patches = () => double.requests.filter(({ method }) => method === 'PATCH').length
    const before = patches()
    await engine.ensureIndex('documents', definition)
    expect(patches()).toBe(before)
  })

  it.each(['1.10.0', '1.15.2', '1.16.0', '1.53.0'])('a scan of server %s sees each document once', async (version) => {
    const { engine } = await openIndex(version)
    const many = Array.from({ length: 25 }, (_, at) => titled(`d${at}`, at + 1))
    await engine.upsert('documents', many)
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await engine.scan('documents', {
        limit: 10,
        ...(after !== undefined && { after }),
      })
      for (const { id, hash } of page.documents) {
        expect(hash).toBe(documentHash({ title: `title of ${id}` }))
        seen.push(id)
      }
      after = page.next
    } while (after !== undefined)
    await expect(engine.scan('documents', { after: 'x' })).rejects.toMatchObject({
      code: 'HMD_OPTION_INVALID',
    })
    expect(seen.toSorted()).toEqual(many.map(({ id }) => id).toSorted())
  })
})

describe('values', () => {
  it('quotes and backslashes are values like any other, and case matters', async () => {
    const strange = [
      '"',
      "'",
      '\\',
      'a\\',
      '\\"',
      '" OR owner = "x',
      'Anna',
      'anna',
      ' anna',
      'ﬁ',
      'fi',
      'x'.repeat(500),
    ]
    await engine.ensureIndex('values', wider)
    await engine.upsert(
      'values',
      strange.map((owner, at) => ({
        id: `v${at}`,
        version: BigInt(at + 1),
        json: JSON.stringify({ owner }),
      })),
    )
    for (const [at, owner] of strange.entries()) {
      const { hits } = await engine.search('values', { filters: { owner } })
      expect(hits.map(({ id }) => id)).toEqual([`v${at}`])
    }
    const { facets } = await engine.search('values', { facets: ['owner'], limit: 0 })
    const shown = facets.owner?.map(({ value }) => value)
    expect(shown?.toSorted()).toEqual([...strange.slice(0, -1), 'x'.repeat(100)].toSorted())
  })
})

describe('options', () => {
  it('are checked, and the key is never shown', () => {
    for (const options of [{}, { url: 'ftp://x' }, { url: 'http://x', key: ' ' }, { url: 'http://x', prefix: 'a b' }]) {
      expect(() => meilisearch(options as never)).toThrow(/meilisearch: /)
    }
    expect(() => meilisearch({ url: 'http://x', apiKey: 'secret-key' } as never)).toThrow(
      expect.not.stringContaining('secret-key'),
    )
  })

  it('a key that may not ask for the version is enough', async () => {
    const end = double.spoil(new Refusal(403, 'invalid_api_key', 'no', 'auth'), ({ path }) => path === '/version')
    expect((await engine.probe()).version).toMatch(/^1\./)
    end()
    double.key = 'another'
    await expect(engine.probe()).rejects.toMatchObject({ code: 'invalid_api_key' })
    await expect(meilisearchOverHttp({ url: double.url }).version()).rejects.toMatchObject({
      code: 'missing_authorization_header',
    })
  })
})
