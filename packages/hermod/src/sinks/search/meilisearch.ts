/**
 * Meilisearch as a search engine (servers from 1.10 on). Its writes are tasks that run later: they are
 * waited for, or parked and asked about in bulk. Resending is harmless. An older version stays out as
 * long as one process at a time writes a document, which is what lanes are for.
 */
import { checkOptions, integer, optional, secret, text } from '../../check-options.ts'
import { httpUrl } from '../http.ts'
import { type Capabilities, unavailable } from '../sink.ts'
import type { ResolvedRequest } from './check-request.ts'
import type { Call, Deletion, Health, ScanPage, Upsert } from './engine.ts'
import {
  isMissing,
  type MeilisearchApi,
  type MeilisearchDocument,
  MeilisearchError,
  meilisearchOverHttp,
} from './meilisearch/api.ts'
import { hiddenFields, primaryKeyOf, storedOf } from './meilisearch/document.ts'
import { MeilisearchGenerations } from './meilisearch/generations.ts'
import { outcomeOfMeilisearch } from './meilisearch/outcomes.ts'
import { PendingVersions } from './meilisearch/pending.ts'
import { type MeilisearchGeneration, Registry } from './meilisearch/registry.ts'
import { scanIn } from './meilisearch/scan.ts'
import { searchIn } from './meilisearch/search.ts'
import { Suspects } from './meilisearch/suspects.ts'
import { Tasks } from './meilisearch/tasks.ts'
import { MeilisearchWriter } from './meilisearch/write.ts'
import { EngineShell, type Looking } from './shell.ts'
import { without } from './shown-hash.ts'

export interface MeilisearchOptions {
  /** `http://127.0.0.1:7700` */
  readonly url: string
  /** Needs documents.*, indexes.*, settings.*, tasks.get, search and version. */
  readonly key?: string
  /** Begins the names of all indexes; none when left out. */
  readonly prefix?: string
  /** For one request; 30 s when left out. */
  readonly timeoutMs?: number
  /** For a task that is waited for; 10 minutes when left out. */
  readonly taskMs?: number
  /** How long a deletion is remembered; 7 days when left out. Longer than any retry. */
  readonly tombstonesMs?: number
}

const PREFIX = /^[A-Za-z0-9_-]{1,40}$/
const generationsMs = 1_000
const minute = 60_000

const optionSpec = {
  url: httpUrl(),
  key: optional(secret()),
  prefix: optional(
    text((value) => (PREFIX.test(String(value)) ? undefined : 'must be letters, digits, _ and -, at most 40')),
  ),
  timeoutMs: integer({ min: 100, max: 10 * minute, default: 30_000 }),
  taskMs: integer({ min: 100, default: 10 * minute }),
  tombstonesMs: integer({ min: minute, default: 7 * 24 * 60 * minute }),
}

export function meilisearch(options: MeilisearchOptions): Meilisearch {
  const { url, key, timeoutMs, ...rest } = checkOptions('meilisearch', options, optionSpec)
  return new Meilisearch(meilisearchOverHttp({ url, key, timeoutMs }), rest)
}

interface EngineOptions {
  readonly prefix?: string | undefined
  readonly taskMs: number
  readonly tombstonesMs: number
}

export class Meilisearch extends EngineShell<MeilisearchGeneration> {
  readonly name = 'meilisearch'
  readonly capabilities: Partial<Capabilities> = Object.freeze({
    itemsMax: 2_000,
    bytesMax: 16 * 1024 * 1024,
    perItemResult: false,
    asynchronous: true,
  })
  override readonly generationsMs = generationsMs
  readonly #api: MeilisearchApi
  readonly #tasks: Tasks
  readonly #generations: MeilisearchGenerations
  readonly #writer: MeilisearchWriter
  #version: Promise<string> | undefined

  constructor(api: MeilisearchApi, { prefix = '', taskMs, tombstonesMs }: EngineOptions) {
    const pending = new PendingVersions()
    const suspects = new Suspects()
    const tasks = new Tasks(api, { waitMs: taskMs, suspects, ended: (task) => pending.ended(task) })
    const registry = new Registry(api, tasks, prefix)
    const generations = new MeilisearchGenerations(api, registry)
    super(generations, generationsMs)
    this.#api = api
    this.#tasks = tasks
    this.#generations = generations
    this.#writer = new MeilisearchWriter(api, { tasks, pending, suspects, registry, tombstonesMs })
  }

  protected upserting(documents: readonly Upsert[]) {
    return this.#writer.upserting(documents)
  }

  protected deleting(documents: readonly Deletion[]) {
    return this.#writer.deleting(documents)
  }

  poll(handles: readonly string[], call: Call = {}) {
    return this.#tasks.poll(handles, call)
  }

  protected searchIn(generation: MeilisearchGeneration, request: ResolvedRequest, call: Call) {
    return searchIn(this.#api, generation, request, call)
  }

  protected async getFrom({ uid, definition }: MeilisearchGeneration, id: string, call: Looking) {
    const found = await this.#api.document(uid, primaryKeyOf(id), call)
    return found === undefined ? undefined : storedOf(definition, found, call.fast)
  }

  protected countIn({ uid }: MeilisearchGeneration, call: Call) {
    return this.#api.count(uid, call)
  }

  givesBack(document: MeilisearchDocument) {
    return without(document, ...hiddenFields)
  }

  protected async scanIn(generation: MeilisearchGeneration, page: ScanPage, call: Call) {
    return scanIn(this.#api, generation, { ...page, version: await this.#serverVersion(call) }, call)
  }

  protected isMissing = isMissing
  protected outcomeOf = outcomeOfMeilisearch

  /** An index that was declared and is gone is made again, empty: somebody must know. */
  protected override async restored(index: string) {
    if (!(await this.#generations.restore(index))) return undefined
    const says = `index ${index} was missing in Meilisearch and was made again, empty: rebuild it`
    return unavailable({ code: 'index_not_found', message: says })
  }

  async probe(call: Call = {}): Promise<Health> {
    try {
      return { version: await this.#api.version(call) }
    } catch (error) {
      if (!(error instanceof MeilisearchError) || error.type !== 'auth') throw error
      // A key may do all we need and not be allowed to ask for the version.
      await this.#api.indexes(call)
      return { version: oldestVersion }
    }
  }

  close(): Promise<void> {
    return this.#api.close()
  }

  async #serverVersion(call: Call): Promise<string> {
    this.#version ??= this.probe(call).then(({ version }) => version)
    try {
      return await this.#version
    } catch (error) {
      this.#version = undefined
      throw error
    }
  }
}

const oldestVersion = '1.10.0'
