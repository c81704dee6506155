/**
 * Meilisearch as a search engine (servers from 1.10 on). Its writes are tasks that run later: they are
 * waited for, or parked and asked about in bulk. Resending is harmless, and an older version stays
 * out as long as one process at a time writes a document, which is what lanes are for.
 */
import { checkOptions, integer, optional, secret, text } from '../../check-options.ts'
import { httpUrl } from '../http.ts'
import { type Capabilities, type Outcome, type Parked, unavailable } from '../sink.ts'
import { checkDefinition, checkIndexName } from './check-definition.ts'
import { checkRequest } from './check-request.ts'
import type { IndexDefinition } from './definition.ts'
import type * as contract from './engine.ts'
import { told } from './generations.ts'
import { type MeilisearchApi, MeilisearchError, meilisearchOverHttp } from './meilisearch/api.ts'
import { displayed, idOf, primaryKeyOf, versionOf } from './meilisearch/document.ts'
import { isMissing, type MeilisearchGeneration, type Picture, pick, Registry } from './meilisearch/generations.ts'
import { outcomeOfMeilisearch } from './meilisearch/outcomes.ts'
import { PendingVersions } from './meilisearch/pending.ts'
import { scanIn } from './meilisearch/scan.ts'
import { searchIn } from './meilisearch/search.ts'
import { hashField } from './meilisearch/settings.ts'
import { Steps } from './meilisearch/steps.ts'
import { Tasks } from './meilisearch/tasks.ts'
import { type Destination, type WriteOptions, Writer } from './meilisearch/write.ts'
import type { SearchRequest, SearchResult } from './request.ts'

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
const purgeEveryMs = 3_600_000
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

interface Known {
  readonly picture: Promise<Picture>
  readonly atMs: number
}

export class Meilisearch implements contract.SearchEngine {
  readonly name = 'meilisearch'
  readonly capabilities: Partial<Capabilities> = Object.freeze({
    itemsMax: 2_000,
    bytesMax: 16 * 1024 * 1024,
    perItemResult: false,
    asynchronous: true,
  })
  readonly generationsMs = generationsMs
  readonly #api: MeilisearchApi
  readonly #tasks: Tasks
  readonly #registry: Registry
  readonly #steps: Steps
  readonly #writer: Writer
  readonly #tombstonesMs: number
  readonly #known = new Map<string, Known>()
  readonly #ensuring = new Map<string, Promise<unknown>>()
  #version: Promise<string> | undefined
  #purgedAtMs = 0

  constructor(api: MeilisearchApi, { prefix = '', taskMs, tombstonesMs }: EngineOptions) {
    const pending = new PendingVersions()
    this.#api = api
    this.#tasks = new Tasks(api, taskMs, (task) => pending.ended(task))
    this.#registry = new Registry(api, this.#tasks, prefix)
    this.#steps = new Steps(api, this.#registry)
    this.#writer = new Writer(api, this.#tasks, pending)
    this.#tombstonesMs = tombstonesMs
  }

  /** One at a time within this process; others find what the first one made. */
  async ensureIndex(index: string, given: IndexDefinition, call: contract.Call = {}) {
    const definition = checkDefinition(index, given)
    const before = this.#ensuring.get(index) ?? Promise.resolve()
    const ensured = before.then(() => this.#steps.ensure(index, definition, call))
    const ended = ensured.catch(() => {}).then(() => {})
    this.#ensuring.set(index, ended)
    try {
      return await ensured
    } finally {
      this.#forget(index)
      if (this.#ensuring.get(index) === ended) this.#ensuring.delete(index)
    }
  }

  upsert(index: string, documents: readonly contract.Upsert[], options: contract.ParkingWrite): contract.MaybeParked
  upsert(index: string, documents: readonly contract.Upsert[], options?: contract.Write): Promise<readonly Outcome[]>
  upsert(index: string, documents: readonly contract.Upsert[], options: WriteOptions = {}): never {
    return this.#write(index, documents.length, options, (to) => this.#writer.upsert(to, documents, options)) as never
  }

  delete(index: string, documents: readonly contract.Deletion[], options: contract.ParkingWrite): contract.MaybeParked
  delete(index: string, documents: readonly contract.Deletion[], options?: contract.Write): Promise<readonly Outcome[]>
  delete(index: string, documents: readonly contract.Deletion[], options: WriteOptions = {}): never {
    return this.#write(index, documents.length, options, (to) => this.#writer.delete(to, documents, options)) as never
  }

  poll(handles: readonly string[], call: contract.Call = {}) {
    return this.#tasks.poll(handles, call)
  }

  search(index: string, request: SearchRequest = {}): Promise<SearchResult> {
    return this.#reading(index, request, (generation, call) => {
      const checked = checkRequest(index, generation.definition, request)
      return searchIn(this.#api, generation, checked, call)
    })
  }

  get(index: string, id: string, options: contract.Read = {}) {
    return this.#reading(index, options, async ({ uid, definition }, call) => {
      const found = await this.#api.document(uid, primaryKeyOf(id), call)
      if (found === undefined) return undefined
      const document = displayed(definition, found)
      return {
        id: idOf(found),
        version: versionOf(found),
        hash: String(found[hashField]),
        document,
      }
    })
  }

  count(index: string, options: contract.Read = {}): Promise<number> {
    return this.#reading(index, options, ({ uid }, call) => this.#api.count(uid, call))
  }

  scan(index: string, page: contract.ScanPage = {}): Promise<contract.ScannedPage> {
    return this.#reading(index, page, async ({ uid }, call) =>
      scanIn(this.#api, uid, { ...page, version: await this.#serverVersion(call) }, call),
    )
  }

  createGeneration(index: string, given: IndexDefinition, call: contract.Call = {}) {
    const definition = checkDefinition(index, given)
    return this.#changing(index, () => this.#steps.create(index, definition, call))
  }

  swapGeneration(index: string, call: contract.Call = {}) {
    return this.#changing(index, () => this.#steps.swap(index, call))
  }

  rollBackGeneration(index: string, call: contract.Call = {}) {
    return this.#changing(index, () => this.#steps.rollBack(index, call))
  }

  async dropGeneration(index: string, id: string, call: contract.Call = {}): Promise<void> {
    try {
      await this.#steps.drop(index, id, call)
    } finally {
      this.#forget(index)
    }
  }

  async generations(index: string, call: contract.Call = {}) {
    checkIndexName(index)
    return (await this.#registry.picture(index, call)).generations.map(told)
  }

  async probe(call: contract.Call = {}): Promise<contract.Health> {
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

  async #changing(index: string, step: () => Promise<MeilisearchGeneration>) {
    try {
      return told(await step())
    } finally {
      this.#forget(index)
    }
  }

  #forget(index: string): void {
    this.#known.delete(index)
  }

  /** As it was within the last second. Whoever asks meanwhile waits too: it takes three requests or more. */
  #picture(index: string): Promise<Picture> {
    const known = this.#known.get(index)
    if (known !== undefined && performance.now() - known.atMs < generationsMs) return known.picture
    const picture = this.#registry.picture(index)
    this.#known.set(index, { picture, atMs: performance.now() })
    picture.catch(() => this.#forget(index))
    return picture
  }

  /** What has gone meanwhile, or been made, is looked for once more. */
  async #reading<T>(
    index: string,
    { generation, signal }: contract.Read,
    work: (generation: MeilisearchGeneration, call: contract.Call) => Promise<T>,
  ): Promise<T> {
    checkIndexName(index)
    signal?.throwIfAborted()
    const call = signal === undefined ? {} : { signal }
    const look = async () => work(pick((await this.#picture(index)).generations, index, generation), call)
    try {
      return await look()
    } catch (error) {
      if (!isGone(error)) throw error
      this.#forget(index)
      return look()
    }
  }

  async #write(
    index: string,
    items: number,
    { generation, signal }: contract.Write,
    work: (to: Destination) => Promise<readonly Outcome[] | Parked>,
  ): Promise<readonly Outcome[] | Parked> {
    if (items === 0) return []
    const send = async () => work(this.#destination(index, await this.#picture(index), generation))
    try {
      signal?.throwIfAborted()
      const result = await send().catch((error) => {
        if (!isGone(error)) throw error
        this.#forget(index)
        return send()
      })
      this.#purge(index)
      return result
    } catch (error) {
      const outcome = await this.#outcome(index, error, items)
      return Array.from({ length: items }, () => outcome)
    }
  }

  /** Every generation hears every write, so that a new one misses nothing and an old one can return. */
  #destination(index: string, { generations }: Picture, id: string | undefined): Destination {
    const first = pick(generations, index, id)
    const others = id === undefined ? generations.filter((one) => one !== first) : []
    return { targets: [first, ...others], goneUid: this.#registry.goneUid(index) }
  }

  /** An index that was declared and is gone is made again, empty: somebody must know. */
  async #outcome(index: string, error: unknown, items: number): Promise<Outcome> {
    if (!isGone(error)) return outcomeOfMeilisearch(error, items)
    this.#forget(index)
    try {
      const picture = await this.#registry.picture(index)
      const live = picture.generations.some(({ state }) => state === 'live')
      const whole = live && picture.hasGone
      if (whole || !(await this.#steps.restore(index, picture, {}))) {
        return outcomeOfMeilisearch(error, items)
      }
    } catch (second) {
      return outcomeOfMeilisearch(second, items)
    }
    const says = `index ${index} was missing in Meilisearch and was made again, empty: rebuild it`
    return unavailable({ code: 'index_not_found', message: says })
  }

  async #serverVersion(call: contract.Call): Promise<string> {
    this.#version ??= this.probe(call).then(({ version }) => version)
    try {
      return await this.#version
    } catch (error) {
      this.#version = undefined
      throw error
    }
  }

  /** Now and then, in passing. */
  #purge(index: string): void {
    const nowMs = Date.now()
    if (nowMs - this.#purgedAtMs < purgeEveryMs) return
    this.#purgedAtMs = nowMs
    this.#writer.purge(this.#registry.goneUid(index), this.#tombstonesMs).catch(() => {})
  }
}

const oldestVersion = '1.10.0'

function isGone(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown }
  return isMissing(error) || code === 'HMD_SEARCH_INDEX_MISSING'
}
