/**
 * Generations in OpenSearch: an index each (`documents_g7`), and aliases that say what it is. Aliases
 * change together in one step, so a generation is never in two states and the live one never missing.
 *
 *   documents.building ──swap──▶ documents ──swap, roll back──▶ documents.retired ──roll back──▶ documents
 *
 * Writes go through one more alias each (`documents.g7`): what was dropped is not made by writing.
 */
import { HermodError } from '../../../errors.ts'
import type { ResolvedDefinition } from '../check-definition.ts'
import { compareDefinitions } from '../compare-definitions.ts'
import type { EnsuredIndex, Generation } from '../engine.ts'
import { pick } from '../generations.ts'
import type { Generations, OwnGeneration } from '../shell.ts'
import { type ApiCall, type IndexState, isGone, isOf, type Json, type OpenSearchApi } from './api.ts'
import { type IndexSettings, mappingOf, settingsOf } from './schema.ts'

export interface OpenSearchGeneration extends OwnGeneration {
  /** The index itself. */
  readonly name: string
  /** What is read and written through. */
  readonly alias: string
  readonly liveAt: number
}

const ensureTries = 5

const nameOf = (index: string, id: string) => `${index}_g${id}`
const aliasOf = (index: string, id: string) => `${index}.g${id}`
const stateAliasOf = (index: string, state: Generation['state']) => (state === 'live' ? index : `${index}.${state}`)

export class OpenSearchGenerations implements Generations<OpenSearchGeneration> {
  readonly #api: OpenSearchApi
  readonly #settings: IndexSettings

  constructor(api: OpenSearchApi, settings: IndexSettings) {
    this.#api = api
    this.#settings = settings
  }

  async read(index: string, call: ApiCall): Promise<OpenSearchGeneration[]> {
    const found = await this.#api.indexes(`${index}_g*`, call)
    return Object.entries(found)
      .map(([name, state]) => generationOf(index, name, state))
      .filter((one) => one !== undefined)
      .sort((a, b) => Number(a.id) - Number(b.id))
  }

  async ensure(index: string, definition: ResolvedDefinition, call: ApiCall): Promise<EnsuredIndex> {
    for (let tries = 1; ; tries++) {
      const all = await this.read(index, call)
      const live = all.find(({ state }) => state === 'live')
      if (live !== undefined) return this.#compare(live, definition, call)
      const id = nextId(all)
      if (await this.#create(index, id, { definition, state: 'live' }, call)) {
        return { generation: id, state: 'created' }
      }
      // Another process is creating it right now.
      if (tries === ensureTries) throw refused(index, 'is being made by others over and over')
    }
  }

  async #compare(live: OpenSearchGeneration, definition: ResolvedDefinition, call: ApiCall): Promise<EnsuredIndex> {
    const change = compareDefinitions(live.definition, definition)
    if (change === 'none') return { generation: live.id, state: 'unchanged' }
    if (change === 'rebuild') return { generation: live.id, state: 'rebuild-needed' }
    await this.#api.changeMeta(live.name, metaOf({ ...live, definition }), call)
    return { generation: live.id, state: 'updated' }
  }

  async create(index: string, definition: ResolvedDefinition, call: ApiCall): Promise<OpenSearchGeneration> {
    const all = await this.read(index, call)
    const id = nextId(all)
    const busy = all.some(({ state }) => state === 'building')
    if (busy || !(await this.#create(index, id, { definition, state: 'building' }, call))) {
      throw refused(index, 'already has a generation that is building')
    }
    return pick(await this.read(index, call), index, id)
  }

  /** The name is the lock: if two processes create the same one, the server refuses the second. */
  async #create(
    index: string,
    id: string,
    { definition, state }: { definition: ResolvedDefinition; state: 'building' | 'live' },
    call: ApiCall,
  ): Promise<boolean> {
    const nowMs = Date.now()
    const meta = { definition, createdAt: new Date(nowMs), liveAt: state === 'live' ? nowMs : 0 }
    const body = {
      settings: settingsOf(index, definition, this.#settings),
      mappings: mappingOf(definition, metaOf(meta)),
      aliases: { [aliasOf(index, id)]: {}, [stateAliasOf(index, state)]: {} },
    }
    try {
      await this.#api.createIndex(nameOf(index, id), body, call)
      return true
    } catch (error) {
      if (isOf(error, 'resource_already_exists_exception')) return false
      if (isOf(error, 'invalid_alias_name_exception')) throw occupied(index, error)
      throw error
    }
  }

  /** What was written is made visible first: a swap must not show less than was there. */
  async swap(index: string, call: ApiCall): Promise<OpenSearchGeneration> {
    const all = await this.read(index, call)
    const next = all.find(({ state }) => state === 'building')
    if (next === undefined) throw refused(index, 'has no generation that is building')
    return this.#makeLive(index, all, next, call)
  }

  async rollBack(index: string, call: ApiCall): Promise<OpenSearchGeneration> {
    const all = await this.read(index, call)
    const retired = all.filter(({ state }) => state === 'retired')
    const next = retired.toSorted((a, b) => a.liveAt - b.liveAt || Number(a.id) - Number(b.id))
    const last = next.at(-1)
    if (last === undefined) throw refused(index, 'has no earlier generation to go back to')
    return this.#makeLive(index, all, last, call)
  }

  /** Refused as a whole if another process was faster: then an alias to remove is gone. */
  async #makeLive(
    index: string,
    all: readonly OpenSearchGeneration[],
    next: OpenSearchGeneration,
    call: ApiCall,
  ): Promise<OpenSearchGeneration> {
    const live = all.find(({ state }) => state === 'live')
    await this.#api.refresh(next.name, call)
    await this.#api.changeMeta(next.name, metaOf({ ...next, liveAt: Date.now() }), call)
    const actions = [...turn(index, next, 'live'), ...(live === undefined ? [] : turn(index, live, 'retired'))]
    try {
      await this.#api.changeAliases(actions, call)
    } catch (error) {
      if (isGone(error)) throw refused(index, 'was changed by somebody else meanwhile', error)
      throw error
    }
    return pick(await this.read(index, call), index, undefined)
  }

  /** Its state alias is removed first, so that nobody makes it live during the drop. */
  async drop(index: string, id: string, call: ApiCall): Promise<void> {
    const found = (await this.read(index, call)).find((one) => one.id === id)
    if (found === undefined) return
    if (found.state === 'live') {
      throw refused(index, `has generation ${id} as the live one, which cannot be dropped`)
    }
    const alias = stateAliasOf(index, found.state)
    try {
      await this.#api.changeAliases([remove(found.name, alias)], call)
    } catch (error) {
      if (!isGone(error)) throw error
      const now = (await this.read(index, call)).find((one) => one.id === id)
      if (now?.state === 'live') throw refused(index, `has generation ${id} as the live one now`)
    }
    await this.#api.dropIndex(found.name, call).catch((error) => {
      if (!isGone(error)) throw error
    })
  }
}

function generationOf(
  index: string,
  name: string,
  { aliases = {}, mappings }: IndexState,
): OpenSearchGeneration | undefined {
  const id = /^(\d+)$/.exec(name.slice(index.length + 2))?.[1]
  const meta = mappings?._meta?.hermod as Meta | undefined
  if (id === undefined || meta?.definition === undefined) return undefined
  const has = (state: Generation['state']) => stateAliasOf(index, state) in aliases
  return {
    id,
    name,
    alias: aliasOf(index, id),
    definition: meta.definition,
    state: has('live') ? 'live' : has('building') ? 'building' : 'retired',
    createdAt: new Date(meta.createdAt),
    liveAt: meta.liveAt,
  }
}

interface Meta {
  readonly definition: ResolvedDefinition
  readonly createdAt: string
  /** Milliseconds since 1970; 0 before. */
  readonly liveAt: number
}

function metaOf({
  definition,
  createdAt,
  liveAt,
}: Pick<OpenSearchGeneration, 'definition' | 'createdAt' | 'liveAt'>): Json {
  return { hermod: { definition, createdAt: createdAt.toISOString(), liveAt } satisfies Meta }
}

const nextId = (all: readonly Generation[]) => String(Math.max(0, ...all.map(({ id }) => Number(id))) + 1)

function turn(index: string, { name, state }: OpenSearchGeneration, next: Generation['state']): Json[] {
  return [remove(name, stateAliasOf(index, state)), { add: { index: name, alias: stateAliasOf(index, next) } }]
}

const remove = (index: string, alias: string): Json => ({
  remove: { index, alias, must_exist: true },
})

const refused = (index: string, says: string, cause?: unknown) =>
  new HermodError('HMD_SEARCH_GENERATION', `index ${index} ${says}`, { cause })

function occupied(index: string, cause: unknown): HermodError {
  const says = `there is an index named ${index} already, and Hermod needs the name for an alias`
  const fix = 'Give the search index another name, or remove the one that is there.'
  return new HermodError('HMD_SEARCH_SETUP', says, { cause, fix })
}
