// The engine's view of Typesense on the vendor's own client: what it does, the double must bear. The
// client's retries are off, since the outbox is the only one to retry.

import { Client } from 'typesense'
import {
  type ApiCall,
  type Found,
  importParameters,
  type NewCollection,
  orMissing,
  readResults,
  type SearchParameters,
  type StoredFields,
  type TypesenseApi,
  TypesenseError,
} from '../../../src/sinks/search/typesense/api.ts'

export function officialTypesense(url: string, apiKey: string): TypesenseApi {
  const client = new Client({
    nodes: [{ url }],
    apiKey,
    connectionTimeoutSeconds: 30,
    numRetries: 0,
    retryIntervalSeconds: 0.001,
    logLevel: 'silent',
  })
  return {
    health: (call) => asked(call, () => client.health.retrieve()).then(() => {}),
    version: async (call) => (await asked(call, () => client.debug.retrieve())).version,
    collections: (call) => asked(call, () => client.collections().retrieve({ exclude_fields: 'fields' })) as never,
    collection: (name, call) => asked(call, () => client.collections(name).retrieve()) as never,
    createCollection: (collection: NewCollection, call) =>
      asked(call, () => client.collections().create(collection as never)).then(() => {}),
    changeMetadata: (name, metadata, call) =>
      asked(call, () => client.collections(name).update({ metadata })).then(() => {}),
    dropCollection: (name, call) => asked(call, () => client.collections(name).delete()).then(() => {}),
    alias: async (name, call) => {
      const found = await orMissing(asked(call, () => client.aliases(name).retrieve()))
      return found?.collection_name
    },
    setAlias: (name, collection, call) =>
      asked(call, () => client.aliases().upsert(name, { collection_name: collection })).then(() => {}),
    importDocuments: (collection, lines, call) => {
      const documents = client.collections(collection).documents()
      return asked(call, () => documents.import(lines, importParameters as object))
    },
    deleteDocuments: (collection, filter, call) => {
      const documents = client.collections(collection).documents()
      return asked(call, () => documents.delete({ filter_by: filter })).then(() => {})
    },
    document: (collection, id, call) =>
      orMissing(
        asked(call, () => client.collections(collection).documents(id).retrieve()),
        /document/i,
      ) as Promise<StoredFields | undefined>,
    multiSearch: async (searches: readonly SearchParameters[], call): Promise<readonly Found[]> => {
      const { results } = (await asked(call, () => client.multiSearch.perform({ searches: searches as never }))) as {
        results: unknown
      }
      return readResults(results, searches.length)
    },
    close: async () => {},
  }
}

/** The client's errors as ours; it takes a signal for searches only. */
async function asked<T>({ signal }: ApiCall, work: () => Promise<T>): Promise<T> {
  signal?.throwIfAborted()
  try {
    return await work()
  } catch (error) {
    const { httpStatus, message } = error as { httpStatus?: number; message: string }
    if (httpStatus === undefined) throw error
    const says = message.replace(/^Request failed with HTTP code \d+ \| Server said: /, '')
    throw new TypesenseError(httpStatus, says)
  }
}
