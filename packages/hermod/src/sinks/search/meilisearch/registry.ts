/**
 * What there is of an index on the server: which Meilisearch index holds which generation is written in
 * its settings, so no crash can make it untrue. A small index of our own holds the declarations.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { ResolvedDefinition } from '../check-definition.ts'
import type { Call } from '../engine.ts'
import type { OwnGeneration } from '../shell.ts'
import { type IndexInfo, isMissing, type MeilisearchApi, MeilisearchError, type MeilisearchSettings } from './api.ts'
import { differ, generationIn, goneSettings, homeSettings, primaryKey, settingsOf } from './schema.ts'
import type { Tasks } from './tasks.ts'

export interface MeilisearchGeneration extends OwnGeneration {
  /** Where its documents lie now. */
  readonly uid: string
}

/** One generation as the small index knows it. */
export interface Entry {
  readonly id: string
  readonly index: string
  readonly generation: number
  /** JSON text. */
  readonly definition: string
  readonly createdAtMs: number
  /** When it last stopped, or was about to stop, being live; 0 = never. */
  readonly retiredAtMs: number
  readonly dropped: boolean
}

/** What is there of one index. */
export interface Picture {
  readonly generations: readonly MeilisearchGeneration[]
  readonly entries: readonly Entry[]
  /** Indexes of generations that were announced, and that hold none: left over, or just being made. */
  readonly unmarked: readonly { readonly uid: string; readonly createdAt: string }[]
  /** The primary key of the index with the live one's name; undefined = there is none. */
  readonly stableKey: string | null | undefined
  /** The index that remembers deletions, and the one of entries. */
  readonly hasGone: boolean
  readonly hasHome: boolean
}

const listAttempts = 3
const listPauseMs = 50

export class Registry {
  readonly #api: MeilisearchApi
  readonly #tasks: Tasks
  readonly #prefix: string

  constructor(api: MeilisearchApi, tasks: Tasks, prefix: string) {
    this.#api = api
    this.#tasks = tasks
    this.#prefix = prefix
  }

  uidOf(index: string, suffix = ''): string {
    return `${this.#prefix}${index}${suffix === '' ? '' : `-${suffix}`}`
  }

  goneUid(index: string): string {
    return this.uidOf(index, 'gone')
  }

  get #home(): string {
    return `${this.#prefix}hermod-generations`
  }

  /** While an index is deleted, older servers may answer 500: they are asked a few times. */
  async indexes(call?: Call): Promise<readonly IndexInfo[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#api.indexes(call)
      } catch (error) {
        if (!isInternal(error) || attempt === listAttempts) throw error
        await pause(listPauseMs * attempt, undefined, call)
      }
    }
  }

  async picture(index: string, call?: Call): Promise<Picture> {
    const stable = this.uidOf(index)
    const own = new RegExp(`^${stable}(-g[0-9]+)?$`)
    const [all, entries] = await Promise.all([this.indexes(call), this.#entries(index, call)])
    const ours = all.filter(({ uid }) => own.test(uid))
    const marks = await Promise.all(ours.map(({ uid }) => this.#mark(uid, call)))
    const generations = ours.flatMap(({ uid }, at) => {
      const entry = entries.find((one) => String(one.generation) === marks[at] && !one.dropped)
      return entry === undefined ? [] : [generationOf(entry, uid, stable)]
    })
    return {
      generations: generations.toSorted((a, b) => Number(a.id) - Number(b.id)),
      entries,
      unmarked: ours.filter(({ uid }, at) => {
        const announced = entries.some(({ generation }) => uid === this.uidOf(index, `g${generation}`))
        return marks[at] === undefined && announced
      }),
      stableKey: ours.find(({ uid }) => uid === stable)?.primaryKey,
      hasGone: all.some(({ uid }) => uid === this.goneUid(index)),
      hasHome: all.some(({ uid }) => uid === this.#home),
    }
  }

  async #mark(uid: string, call?: Call): Promise<string | undefined> {
    try {
      return generationIn(await this.#api.settings(uid, call))
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  async #entries(index: string, call?: Call): Promise<Entry[]> {
    const query = { filter: `index = "${index}"`, limit: 1_000 }
    try {
      const found = await this.#api.documents(this.#home, query, call)
      return found as unknown as Entry[]
    } catch (error) {
      if (isMissing(error) || isUnfilterable(error)) return []
      throw error
    }
  }

  /** Written as a whole; the same again changes nothing. */
  async put(entry: Entry, call?: Call): Promise<void> {
    await this.#tasks.done(await this.#api.addDocuments(this.#home, JSON.stringify(entry), 'id', call), call)
  }

  /** Anybody may do this at any time, and doing it twice changes nothing. */
  async prepare(index: string, { hasGone, hasHome }: Picture, call?: Call): Promise<void> {
    if (!hasHome) await this.make(this.#home, 'id', call)
    await this.#set(this.#home, homeSettings, call)
    const gone = this.goneUid(index)
    if (!hasGone) await this.make(gone, primaryKey, call)
    await this.#set(gone, goneSettings, call)
  }

  async #set(uid: string, settings: MeilisearchSettings, call?: Call): Promise<void> {
    if (!differ(settings, await this.#api.settings(uid, call))) return
    await this.#tasks.done(await this.#api.updateSettings(uid, settings, call), call)
  }

  /** False: somebody else has made it. */
  async make(uid: string, key: string, call?: Call): Promise<boolean> {
    const [error] = await this.#tasks.results([await this.#api.createIndex(uid, key, call)], call)
    if (error === undefined) return true
    if (error.code === 'index_already_exists') return false
    throw error
  }

  /** From now on the documents there are that generation's. */
  mark(uid: string, definition: ResolvedDefinition, id: string, call?: Call): Promise<void> {
    return this.#set(uid, settingsOf(definition, id), call)
  }

  async swap(one: string, other: string, call?: Call): Promise<void> {
    await this.#tasks.done(await this.#api.swapIndexes(one, other, call), call)
  }

  async remove(uid: string, call?: Call): Promise<void> {
    const [error] = await this.#tasks.results([await this.#api.deleteIndex(uid, call)], call)
    if (error !== undefined && !isMissing(error)) throw error
  }
}

function generationOf(entry: Entry, uid: string, stable: string): MeilisearchGeneration {
  const { generation, createdAtMs, retiredAtMs, definition } = entry
  const state = uid === stable ? 'live' : retiredAtMs > 0 ? 'retired' : 'building'
  return {
    id: String(generation),
    uid,
    state,
    createdAt: new Date(createdAtMs),
    definition: JSON.parse(definition),
  }
}

export function entryOf(index: string, generation: number, definition: ResolvedDefinition): Entry {
  return {
    id: `${index}-${generation}`,
    index,
    generation,
    definition: JSON.stringify(definition),
    createdAtMs: Date.now(),
    retiredAtMs: 0,
    dropped: false,
  }
}

export const nextId = ({ entries }: Picture) => Math.max(0, ...entries.map(({ generation }) => generation)) + 1

function isInternal(error: unknown): boolean {
  return error instanceof MeilisearchError && error.status === 500
}

/** Its settings are on their way: nothing can be in it yet. */
function isUnfilterable(error: unknown): boolean {
  return error instanceof MeilisearchError && error.code === 'invalid_document_filter'
}
