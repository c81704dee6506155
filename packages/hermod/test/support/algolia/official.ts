/** The calls the engine needs, made by Algolia's own client: what judges the double. */
import { algoliasearch, type SearchClient } from 'algoliasearch'
import {
  type AlgoliaAnswer,
  type AlgoliaApi,
  AlgoliaFailure,
  type AlgoliaPage,
  type AlgoliaQuery,
  type AlgoliaRecord,
  type AlgoliaSettings,
  type AlgoliaTask,
  isMissing,
} from '../../../src/sinks/search/algolia/api.ts'
import type { Call } from '../../../src/sinks/search/engine.ts'

export interface OfficialOptions {
  readonly appId: string
  readonly apiKey: string
  readonly hosts: readonly string[]
}

/** The client alone, its hosts replaced. */
export function officialClient({ appId, apiKey, hosts }: OfficialOptions): SearchClient {
  return algoliasearch(appId, apiKey, {
    hosts: hosts.map((host) => {
      const { hostname, port } = new URL(host)
      return { url: hostname, port: Number(port), protocol: 'http', accept: 'readWrite' }
    }),
  })
}

export class OfficialAlgolia implements AlgoliaApi {
  readonly #client: SearchClient

  constructor(options: OfficialOptions) {
    this.#client = officialClient(options)
  }

  batch(indexName: string, body: string, call?: Call): Promise<AlgoliaTask> {
    return told(this.#client.batch({ indexName, batchWriteParams: JSON.parse(body) }), call)
  }

  async taskStatus(indexName: string, taskID: number, call?: Call) {
    return (await told(this.#client.getTask({ indexName, taskID }), call)).status
  }

  getObject(indexName: string, objectID: string, call?: Call): Promise<AlgoliaRecord | undefined> {
    return ifThere(told(this.#client.getObject({ indexName, objectID }), call))
  }

  async search(queries: readonly AlgoliaQuery[], call?: Call) {
    const { results } = await told(this.#client.search({ requests: [...queries] }), call)
    return results as unknown as AlgoliaAnswer[]
  }

  async browse(indexName: string, params: object, call?: Call): Promise<AlgoliaPage> {
    const page = await told(this.#client.browse({ indexName, browseParams: params }), call)
    return page as unknown as AlgoliaPage
  }

  getSettings(indexName: string, call?: Call): Promise<AlgoliaSettings | undefined> {
    const settings = this.#client.getSettings({ indexName }) as Promise<unknown>
    return ifThere(told(settings as Promise<AlgoliaSettings>, call))
  }

  setSettings(indexName: string, indexSettings: AlgoliaSettings, call?: Call) {
    return told(this.#client.setSettings({ indexName, indexSettings }), call)
  }

  deleteIndex(indexName: string, call?: Call): Promise<AlgoliaTask> {
    return told(this.#client.deleteIndex({ indexName }), call)
  }

  deleteBy(indexName: string, deleteByParams: object, call?: Call): Promise<AlgoliaTask> {
    return told(this.#client.deleteBy({ indexName, deleteByParams }), call)
  }

  async listIndices(call?: Call): Promise<readonly string[]> {
    return (await told(this.#client.listIndices(), call)).items.map(({ name }) => name)
  }

  async close(): Promise<void> {}
}

/** The client has no abort signals and no field for the position: both are made up for here. */
async function told<T>(answer: Promise<T>, { signal }: Call = {}): Promise<T> {
  answer.catch(() => {})
  signal?.throwIfAborted()
  try {
    return await answer
  } catch (error) {
    const { status, message } = error as { status?: number; message: string }
    if (status === undefined) throw Object.assign(new Error(message), { code: 'ECONNREFUSED' })
    const [, position, objectID] = /position (\d+)(?: objectID=(\S+))?/.exec(message) ?? []
    throw new AlgoliaFailure(status, message, {
      ...(position !== undefined && { position: Number(position) }),
      ...(objectID !== undefined && { objectID }),
    })
  }
}

async function ifThere<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}
