/**
 * Typesense as a search engine: an alias names the live collection, imports answer a line for each
 * document. Typesense knows no versions. An older one stays out because versions are read before every
 * write; two processes that write the same document at the same moment can defeat that.
 */
import { checkOptions, integer, secret } from '../../check-options.ts'
import { httpUrl } from '../http.ts'
import type { Capabilities } from '../sink.ts'
import { idProblem } from './check-document.ts'
import type { ResolvedRequest } from './check-request.ts'
import type { Call, Deletion, Health, ScanPage, Upsert } from './engine.ts'
import { EngineShell, type Looking } from './shell.ts'
import { isMissing, type TypesenseApi, TypesenseError, TypesenseHttp } from './typesense/api.ts'
import { encodeId, storedDocument } from './typesense/document.ts'
import { type TypesenseGeneration, TypesenseGenerations } from './typesense/generations.ts'
import { sizeMax } from './typesense/import.ts'
import { outcomeOfFailure } from './typesense/outcomes.ts'
import { scanIn } from './typesense/scan.ts'
import { searchIn } from './typesense/search.ts'
import { TypesenseWriter } from './typesense/write.ts'
import { WriteTurns } from './write-turns.ts'

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

/** Another process learns of a new generation within this time. */
const generationsMs = 2_000

export class TypesenseSearch extends EngineShell<TypesenseGeneration> {
  readonly name = 'typesense'
  readonly capabilities: Partial<Capabilities> = Object.freeze({
    itemsMax: sizeMax,
    bytesMax: 16 * 1024 * 1024,
    perItemResult: true,
    externalVersion: false,
  })
  override readonly generationsMs = generationsMs
  readonly #api: TypesenseApi
  readonly #writer: TypesenseWriter
  readonly #turns = new WriteTurns()

  constructor(api: TypesenseApi, { tombstonesMs = 7 * 86_400_000 } = {}) {
    const generations = new TypesenseGenerations(api)
    super(generations, generationsMs)
    this.#api = api
    this.#writer = new TypesenseWriter(api, generations, { tombstonesMs })
  }

  protected upserting(documents: readonly Upsert[]) {
    return this.#writer.upserting(documents)
  }

  protected deleting(documents: readonly Deletion[]) {
    return this.#writer.deleting(documents)
  }

  protected override inTurn<T>(index: string, items: readonly Deletion[], work: () => Promise<T>): Promise<T> {
    return this.#turns.run(
      items.map(({ id }) => `${index} ${id}`),
      work,
    )
  }

  protected searchIn(generation: TypesenseGeneration, request: ResolvedRequest, call: Call) {
    return searchIn(this.#api, generation, request, call)
  }

  protected async getFrom({ collection, definition }: TypesenseGeneration, id: string, call: Looking) {
    if (idProblem(id) !== undefined) return undefined
    const stored = await this.#api.document(collection, encodeId(id), call)
    return stored === undefined ? undefined : storedDocument(definition, stored, call.fast)
  }

  protected async countIn({ collection }: TypesenseGeneration, call: Call) {
    return (await this.#api.collection(collection, call)).num_documents
  }

  protected scanIn(generation: TypesenseGeneration, page: ScanPage, call: Call) {
    return scanIn(this.#api, generation, page, call)
  }

  protected isMissing = isMissing
  protected outcomeOf = outcomeOfFailure

  /** The server answers and accepts the key. Its version is told if the key may ask for it. */
  async probe(call: Call = {}): Promise<Health> {
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
}
