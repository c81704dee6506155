/**
 * Generations in Typesense: a collection each, and an alias of the index's name that says which one is
 * live. Swapping is one write of the alias. No state but the alias changes: what is newer than the
 * live one is building, what is older is retired, and a roll-back marks what it leaves.
 *
 *   building ──swap──▶ live ──swap, roll back──▶ retired ──roll back──▶ live
 */
import { HermodError } from '../../../errors.ts'
import type { ResolvedDefinition } from '../check-definition.ts'
import { compareDefinitions } from '../compare-definitions.ts'
import type { EnsuredIndex, Generation } from '../engine.ts'
import { pick } from '../generations.ts'
import type { Generations, OwnGeneration } from '../shell.ts'
import { type ApiCall, type Collection, orMissing, type TypesenseApi, TypesenseError } from './api.ts'
import { collectionOf, tombstonesOf } from './schema.ts'

export interface TypesenseGeneration extends OwnGeneration {
  readonly index: string
  readonly collection: string
  readonly documents: number
}

interface Listed {
  readonly generations: readonly TypesenseGeneration[]
  readonly live: TypesenseGeneration | undefined
}

const ensureTries = 5

/** No index has a hyphen in its name, so no index is called like another one's generation. */
const collectionName = (index: string, id: string) => `${index}-g${id}`
export const tombstonesName = (index: string) => `${index}-deleted`

export class TypesenseGenerations implements Generations<TypesenseGeneration> {
  readonly #api: TypesenseApi

  constructor(api: TypesenseApi) {
    this.#api = api
  }

  async read(index: string, call: ApiCall): Promise<readonly TypesenseGeneration[]> {
    return (await this.#read(index, call)).generations
  }

  /** The alias is read last: what it names is in the list, unless that was dropped meanwhile. */
  async #read(index: string, call: ApiCall): Promise<Listed> {
    const collections = await this.#api.collections(call)
    const alias = await this.#api.alias(index, call)
    return listedOf(index, collections, alias)
  }

  async ensure(index: string, definition: ResolvedDefinition, call: ApiCall): Promise<EnsuredIndex> {
    await this.#createTombstones(index, call)
    for (let tries = 1; ; tries++) {
      const { generations, live } = await this.#read(index, call)
      if (live !== undefined) return this.#compare(index, generations, definition, call)
      const [first] = generations
      const id = first?.id ?? '1'
      const made = first === undefined && (await this.#create(index, id, definition, call))
      if (!made && first === undefined && tries < ensureTries) continue
      // The process that created it may have stopped before this; all set the same alias.
      await this.#api.setAlias(index, collectionName(index, id), call)
      return { generation: id, state: made ? 'created' : 'unchanged' }
    }
  }

  async #compare(
    index: string,
    generations: readonly TypesenseGeneration[],
    definition: ResolvedDefinition,
    call: ApiCall,
  ): Promise<EnsuredIndex> {
    const live = pick(generations, index, undefined)
    const change = compareDefinitions(live.definition, definition)
    if (change === 'none') return { generation: live.id, state: 'unchanged' }
    if (change === 'displayed') {
      await this.#api.changeMetadata(live.collection, metadataOf(definition), call)
      return { generation: live.id, state: 'updated' }
    }
    const replaced = live.documents === 0 && generations.length === 1
    if (!replaced) return { generation: live.id, state: 'rebuild-needed' }
    const made = await this.create(index, definition, call)
    await this.swap(index, call)
    await this.drop(index, live.id, call)
    return { generation: made.id, state: 'updated' }
  }

  /** False when it is there already. */
  async #create(index: string, id: string, definition: ResolvedDefinition, call: ApiCall): Promise<boolean> {
    const collection = collectionOf(collectionName(index, id), definition, metadataOf(definition))
    return created(this.#api.createCollection(collection, call))
  }

  /** Puts back the collection of deletions, in case an operator dropped it. */
  async repair(index: string, call: ApiCall): Promise<void> {
    const { live } = await this.#read(index, call)
    if (live !== undefined) await this.#createTombstones(index, call)
  }

  async #createTombstones(index: string, call: ApiCall): Promise<void> {
    await created(this.#api.createCollection(tombstonesOf(tombstonesName(index)), call))
  }

  /** The name is the lock: if two processes create the same one, Typesense refuses the second. */
  async create(index: string, definition: ResolvedDefinition, call: ApiCall): Promise<Generation> {
    const { generations } = await this.#read(index, call)
    const newest = Math.max(0, ...generations.map(({ id }) => Number(id)))
    const id = String(newest + 1)
    const busy = generations.some(({ state }) => state === 'building')
    if (busy || !(await this.#create(index, id, definition, call))) {
      throw refused(index, 'already has a generation that is building')
    }
    await this.#createTombstones(index, call)
    return pick(await this.read(index, call), index, id)
  }

  async swap(index: string, call: ApiCall): Promise<Generation> {
    const { generations } = await this.#read(index, call)
    const next = generations.find(({ state }) => state === 'building')
    if (next === undefined) throw refused(index, 'has no generation that is building')
    return this.#makeLive(index, next, call)
  }

  /** The former live one is marked first: otherwise it would look like one that is building. */
  async rollBack(index: string, call: ApiCall): Promise<Generation> {
    const { generations, live } = await this.#read(index, call)
    const next = generations.findLast(({ state }) => state === 'retired')
    if (next === undefined) throw refused(index, 'has no earlier generation to go back to')
    if (live !== undefined) {
      const metadata = metadataOf(live.definition, { retired: true })
      await this.#api.changeMetadata(live.collection, metadata, call)
    }
    return this.#makeLive(index, next, call)
  }

  async #makeLive(
    index: string,
    { id, collection, createdAt }: TypesenseGeneration,
    call: ApiCall,
  ): Promise<Generation> {
    await this.#api.setAlias(index, collection, call)
    return { id, state: 'live', createdAt }
  }

  async drop(index: string, id: string, call: ApiCall): Promise<void> {
    const { generations } = await this.#read(index, call)
    const found = generations.find((one) => one.id === id)
    if (found === undefined) return
    if (found.state === 'live') {
      const says = `generation ${id} of index ${index} is live and cannot be dropped`
      throw new HermodError('HMD_SEARCH_GENERATION', says)
    }
    await orMissing(this.#api.dropCollection(found.collection, call))
  }
}

function listedOf(index: string, collections: readonly Collection[], alias: string | undefined): Listed {
  const numbered = collections
    .map((collection) => ({ collection, id: idOf(index, collection) }))
    .filter(({ id }) => id > 0)
    .sort((a, b) => a.id - b.id)
  const liveId = numbered.find(({ collection }) => collection.name === alias)?.id
  const generations = numbered.map(({ collection, id }) => {
    const retired = id < (liveId ?? 0) || retiredOf(collection)
    const state = id === liveId ? 'live' : retired ? 'retired' : 'building'
    return { index, ...generationOf(collection, String(id), state) }
  })
  return { generations, live: generations.find(({ state }) => state === 'live') }
}

function idOf(index: string, { name, metadata }: Collection): number {
  const ours = typeof (metadata?.hermod as { definition?: unknown })?.definition === 'object'
  const begin = collectionName(index, '')
  const number = name.startsWith(begin) ? name.slice(begin.length) : ''
  return ours && /^[1-9]\d{0,8}$/.test(number) ? Number(number) : 0
}

function generationOf(
  { name, created_at, num_documents, metadata }: Collection,
  id: string,
  state: Generation['state'],
): Omit<TypesenseGeneration, 'index'> {
  const { definition } = (metadata as { hermod: { definition: ResolvedDefinition } }).hermod
  return {
    id,
    state,
    createdAt: new Date(created_at * 1_000),
    definition,
    collection: name,
    documents: num_documents,
  }
}

function metadataOf(definition: ResolvedDefinition, marks: { retired?: boolean } = {}) {
  return { hermod: { definition, ...marks } }
}

function retiredOf({ metadata }: Collection): boolean {
  return (metadata?.hermod as { retired?: unknown })?.retired === true
}

async function created(creating: Promise<void>): Promise<boolean> {
  try {
    await creating
    return true
  } catch (error) {
    if (error instanceof TypesenseError && error.status === 409) return false
    throw error
  }
}

const refused = (index: string, says: string) => new HermodError('HMD_SEARCH_GENERATION', `index ${index} ${says}`)
