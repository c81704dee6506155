// A rebuild on every engine while rows change: on the doubles, and on a real OpenSearch where there is
// one. Engines without external versions need the replay; afterwards nothing differs anywhere.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { algolia } from '../../src/sinks/search/algolia.ts'
import type { SearchEngine } from '../../src/sinks/search/engine.ts'
import { meilisearch } from '../../src/sinks/search/meilisearch.ts'
import { opensearch } from '../../src/sinks/search/opensearch.ts'
import { typesense } from '../../src/sinks/search/typesense.ts'
import { drain } from '../../src/testing/index.ts'
import { AlgoliaDouble } from '../support/algolia-double.ts'
import { type MeilisearchDouble, meilisearchDouble } from '../support/meilisearch-double.ts'
import { TypesenseDouble } from '../support/typesense-double.ts'
import { BY, prepare, profiles } from './profiles.ts'

const db = useDatabase()
const key = 'double-master-key'
const forTypesense = new TypesenseDouble()
let forMeilisearch: MeilisearchDouble
let forAlgolia: AlgoliaDouble

beforeAll(async () => {
  await prepare(db, 120)
  await forTypesense.open()
  forMeilisearch = await meilisearchDouble({ key })
  forAlgolia = await AlgoliaDouble.start()
})

afterAll(async () => {
  await forTypesense.close()
  await forMeilisearch.stop()
  await forAlgolia.stop()
})

const node = process.env.HERMOD_TEST_OPENSEARCH ?? ''
const engines: Record<string, () => SearchEngine> = {
  Typesense: () => typesense({ url: forTypesense.url, apiKey: forTypesense.apiKey }),
  Meilisearch: () => meilisearch({ url: forMeilisearch.url, key }),
  Algolia: () =>
    algolia({
      appId: forAlgolia.appId,
      apiKey: forAlgolia.apiKey,
      hosts: forAlgolia.hosts,
      knownMs: 20,
    }),
  ...(node !== '' && { OpenSearch: () => opensearch({ url: node }) }),
}

it.each(Object.entries(engines))(
  '%s: rebuilt while rows change, and nothing differs',
  async (name, make) => {
    // One process knows of its own changes at once.
    const engine = Object.defineProperty(make(), 'generationsMs', { value: 100 })
    const { outbox, index } = profiles(db, { engine, index: { keepMs: 600_000 } })
    await index.ensure()
    await outbox.start({ pollMs: 50, upkeep: false })
    try {
      const { id } = await outbox.rebuild('profiles', {}, BY)
      for (let n = 1; n <= 20; n++) {
        await db.query(`update profile set bio = $2 where id = $1`, [n * 5, `${name} ${n}`])
      }
      await db.query('delete from profile where id = (select max(id) from profile)')
      expect(await outbox.journeys.wait(id)).toMatchObject({ state: 'succeeded', error: null })
      await drain(outbox)
      const { id: check } = await outbox.verify('profiles', {}, BY)
      const { result } = await outbox.journeys.wait(check)
      expect(result).toMatchObject({ missing: 0, orphaned: 0, stale: 0 })
      expect(result?.indexed).toBe(result?.source)
    } finally {
      await outbox.close()
    }
  },
)
