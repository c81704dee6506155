/**
 * The contract of a search engine: one declaration of an index, bulk writes with one outcome per
 * item, searching, and generations that are swapped as a whole. An older version never wins.
 */
import type { Capabilities, Outcome, Parked } from '../sink.ts'
import type { IndexDefinition } from './definition.ts'
import type { SearchRequest, SearchResult } from './request.ts'

export interface SearchEngine {
  /** `postgres`, `opensearch`, … */
  readonly name: string
  /** True facts about the engine; the sink passes them on. */
  readonly capabilities: Partial<Capabilities>
  /** Tables this engine writes in a PostgreSQL database, so that nobody captures them. */
  readonly tables?: readonly string[]
  /**
   * For this long, another process may go on writing to the generations it knew before one was made or
   * dropped; at most 2,000, none when left out.
   */
  readonly generationsMs?: number

  /** Creates what is missing. Safe from any number of processes at once, and again and again. */
  ensureIndex(index: string, definition: IndexDefinition, options?: Call): Promise<EnsuredIndex>

  /** Writes to every generation of the index. One outcome per document, in the order given. */
  upsert(index: string, documents: readonly Upsert[], options: ParkingWrite): MaybeParked
  upsert(index: string, documents: readonly Upsert[], options?: Write): Promise<readonly Outcome[]>
  /** Deleting a missing document is `delivered`. A late upsert of an older version is superseded. */
  delete(index: string, documents: readonly Deletion[], options: ParkingWrite): MaybeParked
  delete(index: string, documents: readonly Deletion[], options?: Write): Promise<readonly Outcome[]>
  /**
   * What became of parked writes, one answer per handle in the order given: one outcome for
   * everything the handle covers (`split` = send it again in halves); undefined = still at work.
   */
  poll?(handles: readonly string[], options?: Call): Promise<readonly (Outcome | undefined)[]>

  search(index: string, request?: SearchRequest): Promise<SearchResult>
  get(index: string, id: string, options?: Look): Promise<StoredDocument | undefined>
  /** Documents that are not deleted; exact. */
  count(index: string, options?: Read): Promise<number>
  /** One page in the engine's own order, each document once: what `verify` compares. */
  scan(index: string, page?: ScanPage): Promise<ScannedPage>

  /**
   * A document as this engine gives it back, if something of it is kept back: `verify` compares the hash of this. The
   * document as it is when left out.
   */
  givesBack?(document: Readonly<Record<string, unknown>>, definition: IndexDefinition): object

  /** A new, empty generation. It gets all writes from now on. Only one can be building at a time. */
  createGeneration(index: string, definition: IndexDefinition, options?: Call): Promise<Generation>
  /** The building generation becomes live in one step; the former one is kept. */
  swapGeneration(index: string, options?: Call): Promise<Generation>
  /** The generation that was live before is live again. */
  rollBackGeneration(index: string, options?: Call): Promise<Generation>
  /** Drops any generation but the live one. Dropping a missing one changes nothing. */
  dropGeneration(index: string, id: string, options?: Call): Promise<void>
  /** Oldest first; empty when there is no such index. */
  generations(index: string, options?: Call): Promise<readonly Generation[]>

  /** Throws what is wrong: not reachable, not allowed, not set up. */
  probe(options?: Call): Promise<Health>
  close(): Promise<void>
}

export interface Call {
  readonly signal?: AbortSignal
}

export interface Read extends Call {
  /** The live generation when left out. */
  readonly generation?: string
}

/** How the hash of a document is found. */
export interface Look extends Read {
  /**
   * The hash that was stored when the document was written, where the engine keeps one. Quicker, but what was changed
   * in the engine since is not seen. False when left out: made from what a search would show.
   */
  readonly fast?: boolean
}

export interface Write extends Call {
  /** Only this generation: for filling one that is building. Every generation when left out. */
  readonly generation?: string
}

/** Engines that answer with a task may leave the waiting to `poll`; others answer as ever. */
export interface ParkingWrite extends Write {
  readonly park: true
}

export type MaybeParked = Promise<readonly Outcome[] | Parked>

export interface Upsert {
  readonly id: string
  /** The log position: only a newer one is applied, anything else is superseded. */
  readonly version: bigint
  /** The whole document as JSON text, an object; engines that need no parsing do none. */
  readonly json: string
}

export interface Deletion {
  readonly id: string
  readonly version: bigint
}

export interface StoredDocument {
  readonly id: string
  readonly version: bigint
  /** As in a scan: what a sampled `verify` compares. */
  readonly hash: string
  /** The displayed fields. */
  readonly document: Readonly<Record<string, unknown>>
}

export interface ScanPage extends Look {
  /** `next` of the page before. */
  readonly after?: string
  /** 1,000 when left out. */
  readonly limit?: number
}

export interface ScannedPage {
  readonly documents: readonly ScannedDocument[]
  /** Where to go on, for this engine only to read; absent at the end. */
  readonly next?: string
}

export interface ScannedDocument {
  readonly id: string
  readonly version: bigint
  /**
   * `documentHash` of what a search would show. Another one if the fields that are searched, counted and sorted by do
   * not fit the document any more. With `fast`: of what was written.
   */
  readonly hash: string
}

export interface EnsuredIndex {
  readonly generation: string
  /**
   * `rebuild-needed`: the live generation was declared otherwise and goes on as it is; a new
   * generation makes the declaration true.
   */
  readonly state: 'created' | 'unchanged' | 'updated' | 'rebuild-needed'
}

export interface Generation {
  readonly id: string
  readonly state: 'building' | 'live' | 'retired'
  readonly createdAt: Date
}

export interface Health {
  /** The version the server gives itself. */
  readonly version: string
}
