/**
 * Upserts and deletions in every generation. Typesense knows no versions, so those that are there are
 * read right before the write, and deletions are remembered in a collection of their own. Writers of
 * the same document take turns within a process; between processes the lane keeps the order.
 */
import { delivered, type Outcome, superseded } from '../../sink.ts'
import { idProblem } from '../check-document.ts'
import type { Deletion, Upsert } from '../engine.ts'
import { hourly, newestOf, refused } from '../items.ts'
import type { Send } from '../shell.ts'
import { worstOf } from '../worst-outcome.ts'
import { type ApiCall, isMissing, type TypesenseApi, TypesenseError } from './api.ts'
import { encodeId, lineOf, versionOf } from './document.ts'
import { type TypesenseGeneration, type TypesenseGenerations, tombstonesName } from './generations.ts'
import { ImportPace, importLines, type Line } from './import.ts'
import { outcomeOfFailure } from './outcomes.ts'
import { own } from './schema.ts'

/** Typesense gives no more hits of one search, and takes no more searches in one call. */
const hitsMax = 250
const searchesMax = 40
/** The filter of a deletion is part of the address. */
const filterCharsMax = 3_000

type Versions = ReadonlyMap<string, bigint>
type Item = { readonly id: string; readonly version: bigint }

export interface WriterOptions {
  readonly tombstonesMs: number
}

export class TypesenseWriter {
  readonly #api: TypesenseApi
  readonly #generations: TypesenseGenerations
  readonly #tombstonesMs: number
  readonly #pace = new ImportPace()
  readonly #purgeDue = hourly()

  constructor(api: TypesenseApi, generations: TypesenseGenerations, { tombstonesMs }: WriterOptions) {
    this.#api = api
    this.#generations = generations
    this.#tombstonesMs = tombstonesMs
  }

  upserting(documents: readonly Upsert[]): Send<TypesenseGeneration> {
    return this.#repairing(async ({ index, targets, call }) => {
      const outcomes: Outcome[][] = []
      for (const target of targets) {
        outcomes.push(await this.#upsertInto(index, target, documents, call))
      }
      return worstOf(outcomes)
    })
  }

  deleting(deletions: readonly Deletion[]): Send<TypesenseGeneration> {
    return this.#repairing(({ index, targets, call }) =>
      this.#inSlices(deletions, (slice) => this.#deleteFrom(index, targets, slice, call)),
    )
  }

  /** The collection of deletions may be what is missing: an operator dropped it by mistake. */
  #repairing(send: Send<TypesenseGeneration>): Send<TypesenseGeneration> {
    return async (to) => {
      try {
        return await send(to)
      } catch (error) {
        if (isMissing(error)) await this.#generations.repair(to.index, to.call)
        throw error
      }
    }
  }

  /** A slice that fails as a whole ends the call: later slices are not sent. */
  async #inSlices<T extends Item>(
    items: readonly T[],
    work: (slice: readonly T[]) => Promise<Outcome[]>,
  ): Promise<Outcome[]> {
    const outcomes: Outcome[] = []
    while (outcomes.length < items.length) {
      const slice = items.slice(outcomes.length, outcomes.length + this.#pace.size)
      const startedAt = performance.now()
      try {
        outcomes.push(...(await work(slice)))
        this.#pace.note(slice.length, performance.now() - startedAt)
      } catch (error) {
        this.#pace.note(slice.length, performance.now() - startedAt)
        if (isMissing(error)) throw error
        const outcome = outcomeOfFailure(error, slice.length)
        outcomes.push(...items.slice(outcomes.length).map(() => outcome))
      }
    }
    return outcomes
  }

  #upsertInto(
    index: string,
    target: TypesenseGeneration,
    documents: readonly Upsert[],
    call: ApiCall,
  ): Promise<Outcome[]> {
    return this.#inSlices(documents, async (slice) => {
      const made = slice.map((document) => lineOf(target.definition, document))
      const newest = newestOf(slice.filter((_, at) => typeof made[at] !== 'string'))
      const collections = [target.collection, tombstonesName(index)]
      const known = await this.#versions(collections, [...newest.keys()], call)
      const prepared = slice.map((document, at): Line | Outcome => {
        const { line } = typeof made[at] === 'object' ? made[at] : { line: undefined }
        if (line === undefined) return refused(String(made[at]))
        const fresh = newest.get(document.id) === document && !isStale(document, known, true)
        return fresh ? { id: encodeId(document.id), line } : superseded()
      })
      const lines = prepared.filter((one): one is Line => 'line' in one)
      const written = await importLines(this.#api, target.collection, lines, call)
      const outcomeOf = new Map(lines.map((line, at) => [line, written[at] as Outcome]))
      return prepared.map((one) => ('line' in one ? (outcomeOf.get(one) as Outcome) : one))
    })
  }

  async #deleteFrom(
    index: string,
    targets: readonly TypesenseGeneration[],
    deletions: readonly Deletion[],
    call: ApiCall,
  ): Promise<Outcome[]> {
    const good = deletions.filter(({ id }) => idProblem(id) === undefined)
    const newest = newestOf(good)
    const names = targets.map(({ collection }) => collection)
    const tombstones = tombstonesName(index)
    const known = await this.#versions([...names, tombstones], [...newest.keys()], call)
    const fresh = [...newest.values()].filter((one) => !isStale(one, known))
    await this.#remember(tombstones, fresh, call)
    for (const name of names) {
      const there = fresh.filter(({ id }) => known[names.indexOf(name)]?.has(encodeId(id)))
      await this.#remove(name, there, call)
    }
    await this.#purge(tombstones, call)
    return deletions.map((one) => {
      const problem = idProblem(one.id)
      if (problem !== undefined) return refused(problem)
      return fresh.includes(one) ? delivered() : superseded()
    })
  }

  /** Before the documents are deleted: after a crash in between, no upsert can bring one back. */
  async #remember(tombstones: string, deletions: readonly Deletion[], call: ApiCall): Promise<void> {
    const lines = deletions.map(({ id, version }) => {
      const encoded = encodeId(id)
      const line = `{"id":"${encoded}","${own.version}":"${version}","${own.position}":${version},"hermod_at":${Date.now()}}`
      return { id: encoded, line }
    })
    const outcomes = await importLines(this.#api, tombstones, lines, call)
    const failed = outcomes.find(({ outcome }) => outcome !== 'delivered')
    if (failed !== undefined) throw new TypesenseError(503, failed.message ?? failed.outcome)
  }

  async #remove(name: string, deletions: readonly Deletion[], call: ApiCall): Promise<void> {
    let ids: string[] = []
    let chars = 0
    const flush = async () => {
      if (ids.length > 0) await this.#api.deleteDocuments(name, `id:[${ids.join(',')}]`, call)
      ids = []
      chars = 0
    }
    for (const { id } of deletions) {
      const encoded = encodeId(id)
      const length = encodeURIComponent(encoded).length + 3
      if (chars + length > filterCharsMax) await flush()
      ids.push(encoded)
      chars += length
    }
    await flush()
  }

  /** The versions of these ids in each of the collections, in few calls. */
  async #versions(collections: readonly string[], ids: readonly string[], call: ApiCall): Promise<Versions[]> {
    const found = collections.map(() => new Map<string, bigint>())
    const searches = collections.flatMap((collection, at) => {
      return chunks(ids.map(encodeId), hitsMax).map((part) => ({
        into: found[at] as Map<string, bigint>,
        search: {
          collection,
          q: '*',
          filter_by: `id:[${part.join(',')}]`,
          per_page: hitsMax,
          include_fields: `id,${own.version}`,
        },
      }))
    })
    for (const part of chunks(searches, searchesMax)) {
      const results = await this.#api.multiSearch(
        part.map(({ search }) => search),
        call,
      )
      results.forEach(({ hits }, at) => {
        for (const { document } of hits) {
          part[at]?.into.set(String(document.id), versionOf(document))
        }
      })
    }
    return found
  }

  /** Once an hour: removes old deletions; no upsert can be that late. */
  async #purge(tombstones: string, call: ApiCall): Promise<void> {
    if (!this.#purgeDue()) return
    const filter = `hermod_at:<${Date.now() - this.#tombstonesMs}`
    await this.#api.deleteDocuments(tombstones, filter, call).catch(() => {})
  }
}

/** A deletion is repeated when its own tombstone is there, since it may have ended in between. */
function isStale({ id, version }: Item, known: readonly Versions[], equalToo = false): boolean {
  const encoded = encodeId(id)
  return known.some((versions) => {
    const there = versions.get(encoded)
    return there !== undefined && (equalToo ? there >= version : there > version)
  })
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  const parts: T[][] = []
  for (let at = 0; at < items.length; at += size) parts.push(items.slice(at, at + size))
  return parts
}
