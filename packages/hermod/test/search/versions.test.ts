// In whatever order upserts and deletions arrive, alone or in batches: the newest version is what
// the index shows, in every engine. The version is the log position, so no two are equal for one
// document.

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { algolia } from '../../src/sinks/search/algolia.ts'
import type { SearchEngine } from '../../src/sinks/search/index.ts'
import { meilisearch } from '../../src/sinks/search/meilisearch.ts'
import { opensearch } from '../../src/sinks/search/opensearch.ts'
import { postgresSearch } from '../../src/sinks/search/postgres.ts'
import { typesense } from '../../src/sinks/search/typesense.ts'
import { AlgoliaDouble } from '../support/algolia-double.ts'
import { meilisearchDouble } from '../support/meilisearch-double.ts'
import { TypesenseDouble } from '../support/typesense-double.ts'

const db = useDatabase({ empty: true })
const url = process.env.HERMOD_TEST_OPENSEARCH

interface Place {
  readonly engine: SearchEngine
  stop(): Promise<unknown>
}

interface Engine {
  open(): Promise<Place>
  /** Refuses an older version itself, so that calls may overlap. Else the lane's owner calls alone. */
  readonly fenced: boolean
  readonly runs: number
}

const engines: Readonly<Record<string, Engine>> = {
  PostgreSQL: {
    ...{ fenced: true, runs: 100 },
    async open() {
      return { engine: postgresSearch({ pool: db.pool }), stop: async () => {} }
    },
  },
  OpenSearch: {
    ...{ fenced: true, runs: 25 },
    async open() {
      const engine = opensearch({ url: url as string, replicas: 0 })
      return { engine, stop: () => fetch(`${url}/${index}_g*`, { method: 'DELETE' }) }
    },
  },
  Typesense: {
    ...{ fenced: false, runs: 25 },
    async open() {
      const double = new TypesenseDouble()
      await double.open()
      const { url, apiKey } = double
      return { engine: typesense({ url, apiKey }), stop: () => double.close() }
    },
  },
  Meilisearch: {
    ...{ fenced: false, runs: 25 },
    async open() {
      const double = await meilisearchDouble({ key: 'double-master-key' })
      const engine = meilisearch({ url: double.url, key: 'double-master-key' })
      return { engine, stop: () => double.stop() }
    },
  },
  Algolia: {
    ...{ fenced: false, runs: 25 },
    async open() {
      const double = await AlgoliaDouble.start()
      const { appId, apiKey, hosts } = double
      return { engine: algolia({ appId, apiKey, hosts }), stop: () => double.stop() }
    },
  },
}

const index = `versions_${Date.now().toString(36)}`
const definition = { fields: { title: { kind: 'text' } } } as const
const ids = ['a', 'b', 'c']
const write = fc.record({ id: fc.constantFrom(...ids), deletes: fc.boolean() })
/** Written in this order, but applied in any other and in batches of any size. */
const history = fc.array(write, { minLength: 1, maxLength: 12 }).chain((writes) => {
  const numbered = writes.map((one, at) => ({ ...one, position: at + 1 }))
  const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 12, maxLength: 12 })
  const arrivals = fc.shuffledSubarray(numbered, { minLength: numbered.length })
  return fc.record({ numbered: fc.constant(numbered), arrivals, sizes })
})

type Numbered = { id: string; deletes: boolean; position: number }

let round = 0

for (const [name, { open, fenced, runs }] of Object.entries(engines)) {
  if (name === 'OpenSearch' && url === undefined) {
    it.skip('OpenSearch: HERMOD_TEST_OPENSEARCH is not set')
    continue
  }
  describe(`an old version in ${name}`, () => {
    let place: Place
    beforeAll(async () => {
      place = await open()
      await place.engine.ensureIndex(index, definition)
    })
    afterAll(async () => {
      await place?.engine.close()
      await place?.stop()
    })

    /** Sends each batch as the sink does: one call of upserts, one of deletions. */
    async function arrive(arrivals: readonly Numbered[], sizes: readonly number[], mark: string) {
      const version = ({ position }: Numbered) => BigInt(round) * 1_000n + BigInt(position)
      const rest = [...arrivals]
      for (const size of sizes) {
        const part = rest.splice(0, size)
        const upserts = part
          .filter(({ deletes }) => !deletes)
          .map((w) => ({
            ...{ id: mark + w.id, version: version(w), json: `{"title":"t${w.position}"}` },
          }))
        const deletions = part
          .filter(({ deletes }) => deletes)
          .map((w) => ({ id: mark + w.id, version: version(w) }))
        await inTurn([
          () => place.engine.upsert(index, upserts),
          () => place.engine.delete(index, deletions),
        ])
      }
    }

    async function inTurn(calls: readonly (() => Promise<unknown>)[]): Promise<void> {
      if (fenced) await Promise.all(calls.map((call) => call()))
      else for (const call of calls) await call()
    }

    async function expectNewest(numbered: readonly Numbered[], mark: string, generation?: string) {
      const read = generation === undefined ? {} : { generation }
      for (const id of ids) {
        const last = numbered.filter((one) => one.id === id).at(-1)
        const expected = last === undefined || last.deletes ? undefined : `t${last.position}`
        const got = await place.engine.get(index, mark + id, read)
        expect(got?.document.title).toBe(expected)
      }
    }

    it('never wins, whatever the order of arrival', async () => {
      await fc.assert(
        fc.asyncProperty(history, async ({ numbered, arrivals, sizes }) => {
          const mark = `r${++round}-`
          await arrive(arrivals, sizes, mark)
          await expectNewest(numbered, mark)
        }),
        { numRuns: runs },
      )
    })

    it('never wins in a generation that is filled while events arrive', async () => {
      const { id: generation } = await place.engine.createGeneration(index, definition)
      await fc.assert(
        fc.asyncProperty(history, fc.nat(12), async ({ numbered, arrivals, sizes }, at) => {
          const mark = `g${++round}-`
          const position = BigInt(round) * 1_000n + BigInt(at)
          const states = new Map(numbered.slice(0, at).map((one) => [one.id, one]))
          const rows = [...states.values()]
            .filter(({ deletes }) => !deletes)
            .map((one) => ({
              ...{ id: mark + one.id, version: position, json: `{"title":"t${one.position}"}` },
            }))
          await inTurn([
            () => arrive(arrivals, sizes, mark),
            () => place.engine.upsert(index, rows, { generation }),
          ])
          await expectNewest(numbered, mark, generation)
        }),
        { numRuns: Math.ceil(runs / 3) },
      )
    })
  })
}
