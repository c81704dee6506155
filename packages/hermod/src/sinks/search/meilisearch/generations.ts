/**
 * Generations in Meilisearch: an index each. The live one has the name of the index; swapping makes two
 * indexes change places, with documents and settings. Each step may be cut off anywhere: what is there
 * afterwards is either not seen yet or complete, and the next try goes on.
 *
 *   documents-g2 (building) ──swap──▶ documents (live) ──swap, roll back──▶ documents-g2 (retired)
 */
import { HermodError } from '../../../errors.ts'
import type { ResolvedDefinition } from '../check-definition.ts'
import { compareDefinitions } from '../compare-definitions.ts'
import type { Call, EnsuredIndex } from '../engine.ts'
import { pick } from '../generations.ts'
import type { Generations } from '../shell.ts'
import { WriteTurns } from '../write-turns.ts'
import type { MeilisearchApi } from './api.ts'
import { type Entry, entryOf, type MeilisearchGeneration, nextId, type Picture, type Registry } from './registry.ts'
import { primaryKey } from './schema.ts'

/** Creating or swapping takes less time; an older mark was left by a process that died. */
const leftOverMs = 60_000

export class MeilisearchGenerations implements Generations<MeilisearchGeneration> {
  readonly #api: MeilisearchApi
  readonly #registry: Registry
  readonly #turns = new WriteTurns()
  readonly #reading = new Map<string, Promise<Picture>>()

  constructor(api: MeilisearchApi, registry: Registry) {
    this.#api = api
    this.#registry = registry
  }

  /** Callers that ask at the same time share the answer: it takes three requests or more. */
  async read(index: string): Promise<readonly MeilisearchGeneration[]> {
    const reading = this.#reading.get(index) ?? this.#registry.picture(index)
    this.#reading.set(index, reading)
    try {
      return (await reading).generations
    } finally {
      if (this.#reading.get(index) === reading) this.#reading.delete(index)
    }
  }

  /** One at a time within this process; others find what the first one made. */
  ensure(index: string, definition: ResolvedDefinition, call: Call): Promise<EnsuredIndex> {
    return this.#turns.run([index], () => this.#changing(index, () => this.#ensure(index, definition, call)))
  }

  async #ensure(index: string, definition: ResolvedDefinition, call: Call): Promise<EnsuredIndex> {
    const picture = await this.#registry.picture(index, call)
    const live = picture.generations.find(({ state }) => state === 'live')
    if (live !== undefined && !picture.hasGone) await this.#registry.prepare(index, picture, call)
    if (live !== undefined) return this.#compare(picture, { live, definition, index }, call)
    this.#refuseForeign(index, picture)
    await this.#registry.prepare(index, picture, call)
    const known = lastEntry(picture)
    const entry = known ?? entryOf(index, nextId(picture), definition)
    if (known === undefined) await this.#registry.put(entry, call)
    await this.#lay(index, entry, picture, call)
    return { generation: String(entry.generation), state: 'created' }
  }

  /** Creates an empty index in place of the live one. */
  async #lay(index: string, entry: Entry, { stableKey }: Picture, call: Call): Promise<void> {
    const uid = this.#registry.uidOf(index)
    if (stableKey === undefined) await this.#registry.make(uid, primaryKey, call)
    const definition = JSON.parse(entry.definition) as ResolvedDefinition
    await this.#registry.mark(uid, definition, String(entry.generation), call)
  }

  /** Recreates a declared index that is gone from the server. True: it exists again, and is empty. */
  async restore(index: string): Promise<boolean> {
    const picture = await this.#registry.picture(index)
    const live = picture.generations.some(({ state }) => state === 'live')
    const entry = lastEntry(picture)
    if ((live && picture.hasGone) || entry === undefined) return false
    this.#refuseForeign(index, picture)
    await this.#registry.prepare(index, picture)
    if (!live) await this.#lay(index, entry, picture, {})
    return true
  }

  async #compare(
    { entries }: Picture,
    { live, definition, index }: { live: MeilisearchGeneration } & Declared,
    call: Call,
  ): Promise<EnsuredIndex> {
    const { id: generation, uid } = live
    const change = compareDefinitions(live.definition, definition)
    if (change === 'rebuild' && (await this.#api.count(uid, call)) > 0) {
      return { generation, state: 'rebuild-needed' }
    }
    await this.#registry.mark(uid, definition, generation, call)
    if (change === 'none') return { generation, state: 'unchanged' }
    const entry = entries.find((one) => String(one.generation) === generation)
    const made = { ...entryOf(index, Number(generation), definition), ...entry }
    await this.#registry.put({ ...made, definition: JSON.stringify(definition) }, call)
    return { generation, state: 'updated' }
  }

  /** An index that somebody else made and filled is not ours to change. */
  #refuseForeign(index: string, { stableKey }: Picture): void {
    if (stableKey === undefined || stableKey === null || stableKey === primaryKey) return
    const says = `index ${this.#registry.uidOf(index)} is in Meilisearch already and was not made by Hermod`
    throw new HermodError('HMD_SEARCH_SETUP', `${says}: choose another name, or a prefix`)
  }

  create(index: string, definition: ResolvedDefinition, call: Call) {
    return this.#alone(index, call, async (picture) => {
      pick(picture.generations, index, undefined)
      if (picture.generations.some(({ state }) => state === 'building')) {
        throw refused(`index ${index} already has a generation that is building`)
      }
      await this.#sweep(picture, call)
      const entry = entryOf(index, nextId(picture), definition)
      const uid = this.#registry.uidOf(index, `g${entry.generation}`)
      await this.#registry.put(entry, call)
      await this.#registry.make(uid, primaryKey, call)
      await this.#registry.mark(uid, definition, String(entry.generation), call)
      return this.#fresh(index, String(entry.generation), call)
    })
  }

  swap(index: string, call: Call): Promise<MeilisearchGeneration> {
    return this.#alone(index, call, (picture) => {
      const next = picture.generations.find(({ state }) => state === 'building')
      if (next === undefined) throw refused(`index ${index} has no generation that is building`)
      return this.#exchange(index, picture, next, call)
    })
  }

  rollBack(index: string, call: Call): Promise<MeilisearchGeneration> {
    return this.#alone(index, call, (picture) => {
      const retired = picture.generations.filter(({ state }) => state === 'retired')
      const when = ({ id }: MeilisearchGeneration) =>
        picture.entries.find(({ generation }) => String(generation) === id)?.retiredAtMs ?? 0
      const [last] = retired.toSorted((a, b) => when(b) - when(a))
      if (last === undefined) throw refused(`index ${index} has no earlier generation to go back to`)
      return this.#exchange(index, picture, last, call)
    })
  }

  /**
   * That the live one was live is recorded before the swap. That the other one is live now
   * need not be recorded: its name says so.
   */
  async #exchange(
    index: string,
    { generations, entries }: Picture,
    next: MeilisearchGeneration,
    call: Call,
  ): Promise<MeilisearchGeneration> {
    const live = pick(generations, index, undefined)
    const entry = entries.find(({ generation }) => String(generation) === live.id)
    if (entry !== undefined) await this.#registry.put({ ...entry, retiredAtMs: Date.now() }, call)
    await this.#registry.swap(live.uid, next.uid, call)
    const now = await this.#fresh(index, next.id, call)
    if (now.state === 'live') return now
    throw refused(`generations of index ${index} were changed by somebody else at the same time`)
  }

  drop(index: string, id: string, call: Call): Promise<void> {
    return this.#changing(index, () => this.#drop(index, id, call))
  }

  async #drop(index: string, id: string, call: Call): Promise<void> {
    const picture = await this.#registry.picture(index, call)
    const found = picture.generations.find((one) => one.id === id)
    if (found?.state === 'live') {
      throw refused(`generation ${id} of index ${index} is live and cannot be dropped`)
    }
    const entry = picture.entries.find(({ generation }) => String(generation) === id)
    if (found !== undefined) await this.#registry.remove(found.uid, call)
    // Kept, so that no later generation gets the same number.
    if (entry !== undefined && !entry.dropped) {
      await this.#registry.put({ ...entry, dropped: true }, call)
    }
  }

  async #fresh(index: string, id: string, call: Call): Promise<MeilisearchGeneration> {
    return pick((await this.#registry.picture(index, call)).generations, index, id)
  }

  /** Nobody shares an answer from before the change. */
  async #changing<T>(index: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } finally {
      this.#reading.delete(index)
    }
  }

  /** Indexes without a mark: a writer that did not know of the drop has recreated them. */
  async #sweep({ unmarked }: Picture, call: Call): Promise<void> {
    for (const { uid, createdAt } of unmarked) {
      if (isOld(createdAt)) await this.#registry.remove(uid, call)
    }
  }

  /**
   * One process at a time for one index. Creating the lock index succeeds for only one of them,
   * whatever happens. A lock that a dead process left behind is removed after a minute.
   */
  async #alone<T>(index: string, call: Call, work: (picture: Picture) => Promise<T>): Promise<T> {
    const uid = this.#registry.uidOf(index, 'lock')
    if (!(await this.#registry.make(uid, 'id', call))) {
      const there = (await this.#registry.indexes(call)).find((one) => one.uid === uid)
      if (there !== undefined && !isOld(there.createdAt)) throw busy(index)
      await this.#registry.remove(uid, call)
      if (!(await this.#registry.make(uid, 'id', call))) throw busy(index)
    }
    try {
      return await this.#changing(index, async () => work(await this.#registry.picture(index, call)))
    } finally {
      await this.#registry.remove(uid).catch(() => {})
    }
  }
}

type Declared = { readonly index: string; readonly definition: ResolvedDefinition }

const isOld = (createdAt: string) => Date.now() - Date.parse(createdAt) > leftOverMs

const refused = (says: string) => new HermodError('HMD_SEARCH_GENERATION', says)
const busy = (index: string) => refused(`generations of index ${index} are being changed by another process`)

/** The declaration in force: the last that was not dropped. */
function lastEntry({ entries }: Picture): Entry | undefined {
  const kept = entries.filter(({ dropped }) => !dropped)
  const live = kept.filter(({ retiredAtMs }) => retiredAtMs === 0)
  return (live.length > 0 ? live : kept).toSorted((a, b) => b.generation - a.generation)[0]
}
