// The conformance suite for search engines against Typesense: the double in test/support, driven by
// our plain HTTP and by the vendor's own client; a real server when HERMOD_LIVE_TYPESENSE is its URL.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TypesenseHttp } from '../../src/sinks/search/typesense/api.ts'
import { TypesenseSearch, typesense } from '../../src/sinks/search/typesense.ts'
import { exerciseSearchEngine } from '../../src/testing/index.ts'
import { tellLeftOut } from '../support/left-out.ts'
import { TypesenseDouble } from '../support/typesense/double.ts'
import { officialTypesense } from '../support/typesense/official.ts'

const double = new TypesenseDouble()
const { HERMOD_LIVE_TYPESENSE: liveUrl, HERMOD_LIVE_TYPESENSE_KEY: liveKey = '' } = process.env
const server = () => ({ url: liveUrl ?? double.url, apiKey: liveUrl ? liveKey : double.apiKey })

beforeAll(() => double.open())
afterAll(() => double.close())

const run = Date.now().toString(36)

describe.each([
  ['plain HTTP', 'h', () => typesense(server())],
  ['the official client', 'o', () => new TypesenseSearch(officialTypesense(server().url, server().apiKey))],
] as const)(`Typesense, ${liveUrl ? 'a real server' : 'the double'}, by %s`, (_, mark, make) => {
  const indexPrefix = `typesense_${mark}${liveUrl ? run : ''}`
  const exercise = exerciseSearchEngine(make, { test: it, indexPrefix })

  it('leaves nothing out', () => {
    expect(exercise.cases.length).toBeGreaterThan(50)
    expect(exercise.leftOut).toEqual([])
  })
  tellLeftOut(exercise)

  // Of a real server nothing is kept.
  afterAll(async () => {
    if (liveUrl === undefined) return
    const api = new TypesenseHttp({ ...server(), timeoutMs: 30_000 })
    for (const { name } of await api.collections({})) {
      if (name.startsWith(indexPrefix)) await api.dropCollection(name, {})
    }
    await api.close()
  })
})
