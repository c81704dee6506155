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
import type { TaskTime } from './slow-tasks.ts'
import { TypesenseDouble } from './typesense/double.ts'

export interface OpenedEngine {
  readonly engine: SearchEngine
  /** Changes a document of the live generation behind the engine's back, and leaves its stored hash as it was. */
  alter(id: string, how: Alteration): Promise<unknown>
  /** Ends the engine and its server. */
  stop(): Promise<unknown>
}

export interface OpenOptions {
  readonly pool: pg.Pool
  /** The one that is made: a server that stays is left without it. */
  readonly index: string
  /** Of the doubles; none when left out. */
  readonly tasks?: TaskTime
}

/** What a search shows; what it finds, counts or sorts by, and does not show. */
export type Alteration = 'shown' | 'words' | 'keys' | 'numbers'

type Open = (options: OpenOptions) => Promise<OpenedEngine>

const openSearchUrl = process.env.HERMOD_TEST_OPENSEARCH

export const everyEngine: Readonly<Record<string, Open>> = {
  postgres: async ({ pool }) => {
    const engine = postgresSearch({ pool })
    return { ...ended(engine), alter: alterRow(pool, engine) }
  },
  typesense: async ({ index }) => {
    const double = new TypesenseDouble()
    await double.open()
    const engine = typesense({ url: double.url, apiKey: double.apiKey })
    const alter: OpenedEngine['alter'] = async (id, how) => {
      const { document } = double.collection(index).rows.get(id) as { document: Fields }
      alterFields(document, how, { words: 'hermod_stems', keys: 'hermod_keys', numbers: 'hermod_n_age' })
    }
    return { ...ended(engine, () => double.close()), alter }
  },
  meilisearch: async ({ index, tasks = 0 }) => {
    const double = await meilisearchDouble({ key: 'double-master-key' })
    double.queue.delayMs = tasks
    const engine = meilisearch({ url: double.url, key: 'double-master-key' })
    const alter: OpenedEngine['alter'] = async (id, how) => {
      const { documents } = double.store.get(index)
      const document = { ...documents.get(id) }
      alterFields(document, how, { words: 'name', keys: 'hermod_is_city', numbers: 'age' })
      documents.set(id, document)
    }
    return { ...ended(engine, () => double.stop()), alter }
  },
  algolia: async ({ index, tasks = 0 }) => {
    const double = await AlgoliaDouble.start()
    double.application.taskMs = tasks
    // The order of tasks is nowhere promised: the worst one.
    double.application.disorder = true
    const { appId, apiKey, hosts } = double
    const engine = algolia({ appId, apiKey, hosts })
    // Keys are never given back: where one was changed, the document has to be changed too to be seen.
    const alter: OpenedEngine['alter'] = async (id, how) => {
      const record = double.application.indices.get(await engine.indexName(index))?.records.get(id)
      const { document, numbers } = record as unknown as { document: Fields; numbers: Fields }
      if (how === 'numbers') numbers.age = 999
      else alterFields(document, how, { words: 'name', keys: 'city', numbers: 'age' })
    }
    return { ...ended(engine, () => double.stop()), alter }
  },
  ...(openSearchUrl && {
    opensearch: async ({ index }: OpenOptions) => {
      const engine = opensearch({ url: openSearchUrl, replicas: 0 })
      const drop = () => fetch(`${openSearchUrl}/${index}*`, { method: 'DELETE' })
      // All that is searched is made by the server from what is shown.
      const alter: OpenedEngine['alter'] = (id, how) => {
        const doc = {
          [{ shown: 'bio', words: 'name', keys: 'city', numbers: 'age' }[how]]: how === 'numbers' ? 999 : 'x',
        }
        const headers = { 'content-type': 'application/json' }
        return fetch(`${openSearchUrl}/${index}/_update/${id}`, {
          method: 'POST',
          headers,
          body: JSON.stringify({ doc }),
        })
      }
      return { ...ended(engine, drop), alter }
    },
  }),
}

type Fields = Record<string, unknown>

function alterFields(document: Fields, how: Alteration, names: Readonly<Record<Exclude<Alteration, 'shown'>, string>>) {
  const name = how === 'shown' ? 'bio' : names[how]
  const before = document[name]
  if (before === undefined) throw new Error(`no field ${name} to alter`)
  document[name] = typeof before === 'number' ? 999 : Array.isArray(before) ? ['altered'] : 'altered'
}

const COLUMNS: Readonly<Record<Alteration, string>> = {
  shown: `source = jsonb_set(source::jsonb, '{bio}', '"altered"')::json`,
  words: `words = '', heading = ''`,
  keys: `keys = '{city=altered}'`,
  numbers: 'n_age = 999',
}

function alterRow(pool: pg.Pool, engine: SearchEngine): OpenedEngine['alter'] {
  return async (id, how) => {
    const table = engine.tables?.at(1)
    const { rowCount } = await pool.query(`update ${table} set ${COLUMNS[how]} where id = $1`, [id])
    if (rowCount !== 1) throw new Error(`no row ${id} in ${table}`)
  }
}

function ended(engine: SearchEngine, stop: () => unknown = () => {}): Omit<OpenedEngine, 'alter'> {
  return {
    engine,
    async stop() {
      await engine.close()
      await stop()
    },
  }
}
