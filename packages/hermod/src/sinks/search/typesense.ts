/**
 * Typesense as a search engine: an alias names the live collection, imports answer a line for each
 * document. Typesense knows no versions: an older one stays out because versions are read before every
 * write, which two processes that write the same document at the same moment can defeat.
 */
import { checkOptions, integer, secret } from '../../check-options.ts'
import { httpUrl } from '../http.ts'
import type { Capabilities, Outcome } from '../sink.ts'
import { checkDefinition, checkIndexName } from './check-definition.ts'
import { idProblem } from './check-document.ts'
import type { IndexDefinition } from './definition.ts'
import type * as contract from './engine.ts'
import { pick, told } from './generations.ts'
import type { SearchRequest, SearchResult } from './request.ts'
import { type TypesenseApi, TypesenseError, TypesenseHttp } from './typesense/api.ts'
import { encodeId, storedDocument } from './typesense/document.ts'
import { Generations, generationsMs, type TypesenseGeneration } from './typesense/generations.ts'
import { sizeMax } from './typesense/import.ts'
import { scanIn } from './typesense/scan.ts'
import { searchIn } from './typesense/search.ts'
import { TypesenseWriter } from './typesense/write.ts'

export interface TypesenseOptions {
  /** `https://search.example.org:8108`, of one node or of the balancer before them. */
  readonly url: string
  /** May read and write collections, aliases and documents. */
  readonly apiKey: string
  /** Of one HTTP request; 30 s when left out. */
  readonly timeoutMs?: number
  /** How long a deletion is remembered; 7 days when left out. Longer than any retry. */
  readonly tombstonesMs?: number
}

const optionSpec = {
  url: httpUrl(),
  apiKey: secret(),
  timeoutMs: integer({ min: 100, max: 3_600_000, default: 30_000 }),
  tombstonesMs: integer({ min: 60_000, default: 7 * 86_400_000 }),
}

export function typesense(options: TypesenseOptions): TypesenseSearch {
  const { tombstonesMs, ...rest } = checkOptions('typesense', options, optionSpec)
  return new TypesenseSearch(new TypesenseHttp(rest), { tombstonesMs })
}

export class TypesenseSearch implements contract.SearchEngine {
  readonly name = 'typesense'
  readonly capabilities: Partial<Capabilities> = Object.freeze({
    itemsMax: sizeMax,
    bytesMax: 16 * 1024 * 1024,
    perItemResult: true,
    externalVersion: false,
  })
  readonly generationsMs = generationsMs
  readonly #api: TypesenseApi
  readonly #generations: Generations
  readonly #writer: TypesenseWriter

  constructor(api: TypesenseApi, { tombstonesMs = 7 * 86_400_000 } = {}) {
    this.#api = api
    this.#generations = new Generations(api)
    this.#writer = new TypesenseWriter(api, this.#generations, { tombstonesMs })
  }

  async ensureIndex(index: string, given: IndexDefinition, { signal }: contract.Call = {}) {
    return this.#generations.ensure(index, checkDefinition(index, given), { signal })
  }

  upsert(
    index: string,
    documents: readonly contract.Upsert[],
    options: contract.Write = {},
  ): Promise<readonly Outcome[]> {
    return this.#writer.upsert(index, documents, options)
  }

  delete(
    index: string,
    documents: readonly contract.Deletion[],
    options: contract.Write = {},
  ): Promise<readonly Outcome[]> {
    return this.#writer.delete(index, documents, options)
  }

  search(index: string, request: SearchRequest = {}): Promise<SearchResult> {
    return this.#reading(index, request, (generation) => searchIn(this.#api, index, generation, request))
  }

  get(index: string, id: string, options: contract.Read = {}) {
    return this.#reading(index, options, async ({ collection, definition }) => {
      if (idProblem(id) !== undefined) return undefined
      const stored = await this.#api.document(collection, encodeId(id), options)
      return stored === undefined ? undefined : storedDocument(definition, stored)
    })
  }

  count(index: string, options: contract.Read = {}) {
    return this.#reading(index, options, async ({ collection }) => {
      return (await this.#api.collection(collection, options)).num_documents
    })
  }

  scan(index: string, page: contract.ScanPage = {}) {
    return this.#reading(index, page, ({ collection }) => scanIn(this.#api, collection, page))
  }

  async createGeneration(index: string, given: IndexDefinition, { signal }: contract.Call = {}) {
    return this.#generations.make(index, checkDefinition(index, given), { signal })
  }

  async swapGeneration(index: string, { signal }: contract.Call = {}) {
    return this.#generations.swap(index, { signal })
  }

  async rollBackGeneration(index: string, { signal }: contract.Call = {}) {
    return this.#generations.rollBack(index, { signal })
  }

  async dropGeneration(index: string, id: string, { signal }: contract.Call = {}) {
    return this.#generations.drop(index, id, { signal })
  }

  async generations(index: string, { signal }: contract.Call = {}) {
    checkIndexName(index)
    return (await this.#generations.now(index, { signal })).map(told)
  }

  /** Answers, takes the key, and says who it is, if the key may ask that. */
  async probe({ signal }: contract.Call = {}): Promise<contract.Health> {
    const call = { signal }
    await this.#api.health(call)
    await this.#api.collections(call)
    const version = await this.#api.version(call).catch((error) => {
      if (error instanceof TypesenseError && [401, 403].includes(error.status)) return 'not told'
      throw error
    })
    return { version }
  }

  close(): Promise<void> {
    return this.#api.close()
  }

  /** Dropped in between: whoever asks for the live one gets the one that is live now. */
  async #reading<T>(
    index: string,
    { generation, signal }: contract.Read,
    work: (generation: TypesenseGeneration) => Promise<T>,
  ): Promise<T> {
    checkIndexName(index)
    const call = { signal }
    const known = pick(await this.#generations.list(index, call), index, generation)
    try {
      return await work(known)
    } catch (error) {
      if (!(error instanceof TypesenseError) || error.status !== 404) throw error
      return work(pick(await this.#generations.now(index, call), index, generation))
    }
  }
}
