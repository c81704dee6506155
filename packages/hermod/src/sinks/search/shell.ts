/**
 * What all search engines do in the same way: check what is given, pick a generation, read from it, write
 * to all of them, and turn failures into outcomes. An engine adds its API, its document mapping, its query,
 * its generations and its outcomes.
 */
import { HermodError } from '../../errors.ts'
import { type Capabilities, misconfigured, type Outcome, type Parked } from '../sink.ts'
import { checkDefinition, checkIndexName, type ResolvedDefinition } from './check-definition.ts'
import { checkRequest, type ResolvedRequest } from './check-request.ts'
import type { IndexDefinition } from './definition.ts'
import type * as contract from './engine.ts'
import { KnownGenerations, pick, told } from './generations.ts'
import type { SearchRequest, SearchResult } from './request.ts'

/** A generation as its engine knows it. */
export interface OwnGeneration extends contract.Generation {
  readonly definition: ResolvedDefinition
}

/** How an engine keeps generations. The shell decides when to ask and remembers the answer. */
export interface Generations<G extends OwnGeneration> {
  /** As they are now, oldest first. */
  read(index: string, call: contract.Call): Promise<readonly G[]>
  ensure(index: string, definition: ResolvedDefinition, call: contract.Call): Promise<contract.EnsuredIndex>
  create(index: string, definition: ResolvedDefinition, call: contract.Call): Promise<contract.Generation>
  swap(index: string, call: contract.Call): Promise<contract.Generation>
  rollBack(index: string, call: contract.Call): Promise<contract.Generation>
  drop(index: string, id: string, call: contract.Call): Promise<void>
}

/** Where a write goes. */
export interface Destination<G extends OwnGeneration> {
  readonly index: string
  /** The first one's outcomes count, unless another one failed. */
  readonly targets: readonly G[]
  /** The caller can poll later. */
  readonly park: boolean
  readonly call: contract.Call
}

/** Sends one batch. Called a second time, with a fresh destination, when a generation was gone. */
export type Send<G extends OwnGeneration> = (to: Destination<G>) => Promise<readonly Outcome[] | Parked>

interface WriteOptions extends contract.Write {
  readonly park?: boolean
}

type Item = contract.Deletion

/** A call that reads a document with its hash. */
export interface Looking extends contract.Call {
  readonly fast: boolean
}

export abstract class EngineShell<G extends OwnGeneration> implements contract.SearchEngine {
  abstract readonly name: string
  abstract readonly capabilities: Partial<Capabilities>
  readonly generationsMs?: number
  readonly #generations: Generations<G>
  readonly #known: KnownGenerations<G>

  /** `listedMs`: how long a list of generations is used before it is read again. */
  constructor(generations: Generations<G>, listedMs: number) {
    this.#generations = generations
    this.#known = new KnownGenerations(listedMs)
  }

  protected abstract searchIn(generation: G, request: ResolvedRequest, call: contract.Call): Promise<SearchResult>
  protected abstract getFrom(generation: G, id: string, call: Looking): Promise<contract.StoredDocument | undefined>
  protected abstract countIn(generation: G, call: contract.Call): Promise<number>
  protected abstract scanIn(generation: G, page: contract.ScanPage, call: contract.Call): Promise<contract.ScannedPage>
  protected abstract upserting(documents: readonly contract.Upsert[]): Send<G>
  protected abstract deleting(documents: readonly contract.Deletion[]): Send<G>
  /** The server says that an index or a table is not there. */
  protected abstract isMissing(error: unknown): boolean
  /** What a failed call means for each of its items. */
  protected abstract outcomeOf(error: unknown, items: number): Outcome
  abstract probe(call?: contract.Call): Promise<contract.Health>
  abstract close(): Promise<void>

  /** For engines whose own errors need a sentence before a caller sees them. */
  protected explained(error: unknown, _index: string): unknown {
    return error
  }

  /** For engines that cannot compare versions: writers of the same document take turns. */
  protected inTurn<T>(_index: string, _items: readonly Item[], work: () => Promise<T>): Promise<T> {
    return work()
  }

  /** For engines that can put back an index that somebody removed from the server. */
  protected async restored(_index: string): Promise<Outcome | undefined> {
    return undefined
  }

  async ensureIndex(index: string, given: IndexDefinition, call: contract.Call = {}) {
    const definition = checkDefinition(index, given)
    return this.#changing(index, () => this.#generations.ensure(index, definition, call))
  }

  upsert(index: string, documents: readonly contract.Upsert[], options: contract.ParkingWrite): contract.MaybeParked
  upsert(index: string, documents: readonly contract.Upsert[], options?: contract.Write): Promise<readonly Outcome[]>
  upsert(index: string, documents: readonly contract.Upsert[], options: WriteOptions = {}): never {
    return this.#write(index, documents, options, () => this.upserting(documents)) as never
  }

  delete(index: string, documents: readonly contract.Deletion[], options: contract.ParkingWrite): contract.MaybeParked
  delete(index: string, documents: readonly contract.Deletion[], options?: contract.Write): Promise<readonly Outcome[]>
  delete(index: string, documents: readonly contract.Deletion[], options: WriteOptions = {}): never {
    return this.#write(index, documents, options, () => this.deleting(documents)) as never
  }

  search(index: string, request: SearchRequest = {}): Promise<SearchResult> {
    return this.reading(index, request, (generation, call) =>
      this.searchIn(generation, checkRequest(index, generation.definition, request), call),
    )
  }

  get(index: string, id: string, options: contract.Look = {}): Promise<contract.StoredDocument | undefined> {
    const { fast = false } = options
    return this.reading(index, options, (generation, call) => this.getFrom(generation, id, { ...call, fast }))
  }

  count(index: string, options: contract.Read = {}): Promise<number> {
    return this.reading(index, options, (generation, call) => this.countIn(generation, call))
  }

  scan(index: string, page: contract.ScanPage = {}): Promise<contract.ScannedPage> {
    return this.reading(index, page, (generation, call) => this.scanIn(generation, page, call))
  }

  async createGeneration(index: string, given: IndexDefinition, call: contract.Call = {}) {
    const definition = checkDefinition(index, given)
    return told(await this.#changing(index, () => this.#generations.create(index, definition, call)))
  }

  async swapGeneration(index: string, call: contract.Call = {}) {
    return told(await this.#changing(index, () => this.#generations.swap(index, call)))
  }

  async rollBackGeneration(index: string, call: contract.Call = {}) {
    return told(await this.#changing(index, () => this.#generations.rollBack(index, call)))
  }

  dropGeneration(index: string, id: string, call: contract.Call = {}): Promise<void> {
    return this.#changing(index, () => this.#generations.drop(index, id, call))
  }

  async generations(index: string, call: contract.Call = {}): Promise<readonly contract.Generation[]> {
    checkIndexName(index)
    return this.#explaining(index, async () => (await this.#now(index, call)).map(told))
  }

  /** Works on the live generation, or on the one asked for. */
  protected async reading<T>(
    index: string,
    { generation, signal }: contract.Read,
    work: (generation: G, call: contract.Call) => Promise<T>,
  ): Promise<T> {
    checkIndexName(index)
    const call = callOf(signal)
    const list = this.#known.list(index, () => this.#generations.read(index, call))
    return this.#explaining(index, () =>
      this.#twice(index, call, list, (all) => work(pick(all, index, generation), call)),
    )
  }

  /** Every generation gets every write, so that a new one misses nothing and an old one can return. */
  async #write(
    index: string,
    items: readonly Item[],
    { generation, signal, park = false }: WriteOptions,
    prepare: () => Send<G>,
  ): Promise<readonly Outcome[] | Parked> {
    if (items.length === 0) return []
    try {
      const call = callOf(signal)
      const send = prepare()
      return await this.inTurn(index, items, () =>
        this.#twice(index, call, this.#toWrite(index, call), (all) => {
          const targets = targetsOf(all, index, generation)
          return send({ index, targets, park, call })
        }),
      )
    } catch (error) {
      const outcome = await this.#failed(index, error, items.length)
      return items.map(() => outcome)
    }
  }

  /** Without `generationsMs` other processes count on new generations being written at once. */
  #toWrite(index: string, call: contract.Call): Promise<readonly G[]> {
    if (this.generationsMs === undefined) return this.#now(index, call)
    return this.#known.list(index, () => this.#generations.read(index, call))
  }

  /** A generation may have been made or dropped since it was listed: then once more, with a fresh list. */
  async #twice<T>(
    index: string,
    call: contract.Call,
    list: Promise<readonly G[]>,
    work: (all: readonly G[]) => Promise<T>,
  ): Promise<T> {
    const all = await list
    try {
      return await work(all)
    } catch (error) {
      if (!this.#isGone(error)) throw error
      return work(await this.#now(index, call))
    }
  }

  async #failed(index: string, error: unknown, items: number): Promise<Outcome> {
    try {
      const restored = this.#isGone(error) ? await this.restored(index) : undefined
      return restored ?? this.#outcomeOf(error, items)
    } catch (second) {
      return this.#outcomeOf(second, items)
    }
  }

  /** Our own refusals are about the configuration; the engine knows what its server's mean. */
  #outcomeOf(error: unknown, items: number): Outcome {
    if (!(error instanceof HermodError)) return this.outcomeOf(error, items)
    return misconfigured({ code: error.code, message: `${error.message}. ${error.fix}` })
  }

  #isGone(error: unknown): boolean {
    return this.isMissing(error) || (error as { code?: unknown } | undefined)?.code === 'HMD_SEARCH_INDEX_MISSING'
  }

  #now(index: string, call: contract.Call): Promise<readonly G[]> {
    return this.#known.now(index, () => this.#generations.read(index, call))
  }

  async #changing<T>(index: string, step: () => Promise<T>): Promise<T> {
    checkIndexName(index)
    this.#known.changed(index)
    try {
      return await this.#explaining(index, step)
    } finally {
      this.#known.changed(index)
    }
  }

  async #explaining<T>(index: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw this.explained(error, index)
    }
  }
}

function callOf(signal: AbortSignal | undefined): contract.Call {
  signal?.throwIfAborted()
  return signal === undefined ? {} : { signal }
}

/** The live generation first, then the others; only one when it was named. */
function targetsOf<G extends OwnGeneration>(all: readonly G[], index: string, id: string | undefined): readonly G[] {
  const first = pick(all, index, id)
  return id === undefined ? [first, ...all.filter((one) => one !== first)] : [first]
}
