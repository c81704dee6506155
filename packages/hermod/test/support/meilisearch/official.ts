/**
 * The operations of Meilisearch's API through its official client, so that the same cases run over
 * both: what the double says must satisfy the vendor's own code, and what we send must be what it sends.
 */
import { Meilisearch as Client, MeilisearchApiError, MeilisearchRequestError } from 'meilisearch'
import type { Call } from '../../../src/sinks/search/engine.ts'
import {
  type DocumentsQuery,
  type MeilisearchApi,
  MeilisearchError,
  type MeilisearchSettings,
  type MeilisearchTask,
  type SearchAnswer,
  type SearchQuery,
  sizesOf,
  tasksOfBatches,
} from '../../../src/sinks/search/meilisearch/api.ts'

export class OfficialApi implements MeilisearchApi {
  readonly #client: Client

  constructor(url: string, key?: string) {
    this.#client = new Client({ host: url, ...(key !== undefined && { apiKey: key }) })
  }

  version(call?: Call) {
    return told(call, async () => (await this.#client.getVersion()).pkgVersion)
  }

  indexes(call?: Call) {
    return told(call, async () => {
      const { results } = await this.#client.getRawIndexes({ limit: 1_000 })
      return results.map(({ uid, primaryKey = null, createdAt }) => {
        return { uid, primaryKey, createdAt: String(createdAt) }
      })
    })
  }

  createIndex(uid: string, primaryKey: string, call?: Call) {
    return told(call, async () => (await this.#client.createIndex(uid, { primaryKey })).taskUid)
  }

  deleteIndex(uid: string, call?: Call) {
    return told(call, async () => (await this.#client.deleteIndex(uid)).taskUid)
  }

  updateSettings(uid: string, settings: MeilisearchSettings, call?: Call) {
    return told(call, async () => (await this.#client.index(uid).updateSettings(settings)).taskUid)
  }

  addDocuments(uid: string, ndjson: string, primaryKey: string, call?: Call) {
    return told(call, async () => {
      const index = this.#client.index(uid)
      const type = 'application/x-ndjson'
      return (await index.addDocumentsFromString(ndjson, type, { primaryKey })).taskUid
    })
  }

  deleteDocuments(uid: string, ids: readonly string[], call?: Call) {
    return told(call, async () => {
      return (await this.#client.index(uid).deleteDocuments([...ids])).taskUid
    })
  }

  separate(uid: string, filter: string, call?: Call) {
    return told(call, async () => (await this.#client.index(uid).deleteDocuments({ filter })).taskUid)
  }

  swapIndexes(one: string, other: string, call?: Call) {
    const swap = [{ indexes: [one, other] as [string, string] }]
    return told(call, async () => (await this.#client.swapIndexes(swap as never)).taskUid)
  }

  tasks(uids: readonly number[], call?: Call) {
    return told(call, async () => {
      const { results } = await this.#client.tasks.getTasks({ uids: [...uids], limit: uids.length })
      return results as unknown as MeilisearchTask[]
    })
  }

  batchSizes(batches: readonly number[], call?: Call) {
    return told(call, async () => {
      const query = { batchUids: [...batches], limit: tasksOfBatches }
      return sizesOf((await this.#client.tasks.getTasks(query)).results as unknown as MeilisearchTask[])
    })
  }

  settings(uid: string, call?: Call) {
    return told(call, async () => {
      return (await this.#client.index(uid).getSettings()) as MeilisearchSettings
    })
  }

  document(uid: string, id: string, call?: Call) {
    return told(call, async () => {
      try {
        return (await this.#client.index(uid).getDocument(id)) as Record<string, unknown>
      } catch (error) {
        if ((error as MeilisearchApiError).cause?.code === 'document_not_found') return undefined
        throw error
      }
    })
  }

  documents(uid: string, query: DocumentsQuery, call?: Call) {
    return told(call, async () => {
      const { results } = await this.#client.index(uid).getDocuments(query as never)
      return results as Record<string, unknown>[]
    })
  }

  count(uid: string, call?: Call) {
    return told(call, async () => (await this.#client.index(uid).getStats()).numberOfDocuments)
  }

  multiSearch(queries: readonly SearchQuery[], call?: Call) {
    return told(call, async () => {
      const { results } = await this.#client.multiSearch({ queries: queries as never })
      return results as unknown as SearchAnswer[]
    })
  }

  async close(): Promise<void> {}
}

/** The client's errors as ours; it can be told to stop before a call only. */
async function told<T>(call: Call | undefined, work: () => Promise<T>): Promise<T> {
  call?.signal?.throwIfAborted()
  try {
    return await work()
  } catch (error) {
    if (error instanceof MeilisearchApiError) {
      const { status } = error.response
      const { code = `http_${status}`, type = '' } = error.cause ?? {}
      throw new MeilisearchError(status, { code, type, message: error.message })
    }
    throw error instanceof MeilisearchRequestError ? (error.cause ?? error) : error
  }
}
