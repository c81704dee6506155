/**
 * Every search engine on a server of its own: PostgreSQL, the doubles, and the real OpenSearch node
 * when HERMOD_TEST_OPENSEARCH says where it is.
 */
import type pg from 'pg'
import { algolia } from '../../src/sinks/search/algolia.ts'
import type { SearchEngine } from '../../src/sinks/search/index.ts'
import { meilisearch } from '../../src/sinks/search/meilisearch.ts'
import { opensearch } from '../../src/sinks/search/opensearch.ts'
import { postgresSearch } from '../../src/sinks/search/postgres.ts'
import { typesense } from '../../src/sinks/search/typesense.ts'
import { AlgoliaDouble } from './algolia/double.ts'
import { meilisearchDouble } from './meilisearch/double.ts'
import { TypesenseDouble } from './typesense/double.ts'

export interface OpenedEngine {
  readonly engine: SearchEngine
  /** Ends the engine and its server. */
  stop(): Promise<unknown>
}

export interface OpenOptions {
  readonly pool: pg.Pool
  /** The one that is made: a server that stays is left without it. */
  readonly index: string
}

type Open = (options: OpenOptions) => Promise<OpenedEngine>

const openSearchUrl = process.env.HERMOD_TEST_OPENSEARCH

export const everyEngine: Readonly<Record<string, Open>> = {
  postgres: async ({ pool }) => ended(postgresSearch({ pool })),
  typesense: async () => {
    const double = new TypesenseDouble()
    await double.open()
    return ended(typesense({ url: double.url, apiKey: double.apiKey }), () => double.close())
  },
  meilisearch: async () => {
    const double = await meilisearchDouble({ key: 'double-master-key' })
    const engine = meilisearch({ url: double.url, key: 'double-master-key' })
    return ended(engine, () => double.stop())
  },
  algolia: async () => {
    const double = await AlgoliaDouble.start()
    // The order of tasks is nowhere promised: the worst one.
    double.application.disorder = true
    const { appId, apiKey, hosts } = double
    return ended(algolia({ appId, apiKey, hosts }), () => double.stop())
  },
  ...(openSearchUrl && {
    opensearch: async ({ index }: OpenOptions) =>
      ended(opensearch({ url: openSearchUrl, replicas: 0 }), () =>
        fetch(`${openSearchUrl}/${index}*`, { method: 'DELETE' }),
      ),
  }),
}

function ended(engine: SearchEngine, stop: () => unknown = () => {}): OpenedEngine {
  return {
    engine,
    async stop() {
      await engine.close()
      await stop()
    },
  }
}
