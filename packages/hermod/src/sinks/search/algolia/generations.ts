/**
 * Generations in Algolia: an index each (`documents-g2`), and one more (`documents`) without records
 * whose `userData` says which there are and which is live. Every change is one write of that state,
 * so it happened or it did not. Renaming would not do: a write that was accepted under the old name
 * could be lost with it.
 *
 *   building ──swap──▶ live ──swap, roll back──▶ retired ──roll back──▶ live
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { HermodError } from '../../../errors.ts'
import type { ResolvedDefinition } from '../check-definition.ts'
import { compareDefinitions } from '../compare-definitions.ts'
import type { Call, EnsuredIndex } from '../engine.ts'
import type { Generations } from '../shell.ts'
import { WriteTurns } from '../write-turns.ts'
import type { AlgoliaApi } from './api.ts'
import { settingsOf } from './schema.ts'
import {
  type AlgoliaGeneration,
  added,
  enthroned,
  isMarked,
  markOf,
  nameOf,
  replaced,
  type State,
  stateOf,
  userDataOf,
  without,
} from './state.ts'
import { waitForTasks } from './tasks.ts'

export class AlgoliaGenerations implements Generations<AlgoliaGeneration> {
  readonly #api: AlgoliaApi
  readonly #knownMs: number
  readonly #turns = new WriteTurns()

  /** `knownMs`: for so long other processes may go on writing to a generation that was dropped. */
  constructor(api: AlgoliaApi, knownMs: number) {
    this.#api = api
    this.#knownMs = knownMs
  }

  async read(index: string, call: Call): Promise<readonly AlgoliaGeneration[]> {
    return (await this.#read(index, call)).generations
  }

  /** Two processes that ensure the same index create the same one. */
  ensure(index: string, definition: ResolvedDefinition, call: Call): Promise<EnsuredIndex> {
    return this.#change(index, call, async (state) => {
      const live = state.generations.find(({ state: is }) => is === 'live')
      if (live === undefined) return this.#replace(state, { index, definition }, 'created', call)
      const change = compareDefinitions(live.definition, definition)
      if (change === 'none') return [state, { generation: live.id, state: 'unchanged' }]
      if (change === 'displayed') {
        await this.#configure(index, live.indexName, definition, call)
        const next = replaced(state, { ...live, definition })
        return [next, { generation: live.id, state: 'updated' }]
      }
      if (await this.#isUsed(live, call)) {
        return [state, { generation: live.id, state: 'rebuild-needed' }]
      }
      return this.#replace(without(state, live.id), { index, definition }, 'updated', call)
    })
  }

  create(index: string, definition: ResolvedDefinition, call: Call): Promise<AlgoliaGeneration> {
    return this.#change(index, call, async (state) => {
      if (state.generations.some((one) => one.state === 'building')) {
        throw refused(`index ${index} already has a generation that is building`)
      }
      await this.#sweep(index, state, call)
      const made = await this.#make(state, { index, definition, is: 'building' }, call)
      return [added(state, made), made]
    })
  }

  swap(index: string, call: Call): Promise<AlgoliaGeneration> {
    return this.#change(index, call, async (state) => {
      const next = state.generations.find((one) => one.state === 'building')
      if (next === undefined) throw refused(`index ${index} has no generation that is building`)
      return enthroned(state, next)
    })
  }

  rollBack(index: string, call: Call): Promise<AlgoliaGeneration> {
    return this.#change(index, call, async (state) => {
      const [next] = state.generations.filter((one) => one.state === 'retired').sort((a, b) => b.liveTurn - a.liveTurn)
      if (next === undefined) throw refused(`index ${index} has no earlier generation to go back to`)
      return enthroned(state, next)
    })
  }

  /** Waits until every process has stopped writing to it: a write would recreate the index. */
  async drop(index: string, id: string, call: Call): Promise<void> {
    const dropped = await this.#change(index, call, async (state) => {
      const found = state.generations.find((one) => one.id === id)
      if (found === undefined) return [state, undefined]
      if (found.state === 'live') {
        throw refused(`generation ${id} of index ${index} is live and cannot be dropped`)
      }
      return [without(state, id), found]
    })
    if (dropped === undefined) return
    await sleep(this.#knownMs, undefined, call)
    await this.#delete(dropped.indexName, call)
  }

  /** One change at a time in this process; between processes the last one wins. */
  #change<T>(index: string, call: Call, work: (state: State) => Promise<readonly [State, T]>): Promise<T> {
    return this.#turns.run([index], async () => {
      const state = await this.#read(index, call)
      const [next, result] = await work(state)
      if (next !== state) await this.#write(index, next, call)
      return result
    })
  }

  async #read(index: string, call: Call): Promise<State> {
    const settings = await this.#api.getSettings(index, call)
    return stateOf(index, settings?.userData)
  }

  async #write(index: string, state: State, call: Call): Promise<void> {
    const { taskID } = await this.#api.setSettings(index, { userData: userDataOf(state) }, call)
    await waitForTasks(this.#api, [[index, taskID]], call)
  }

  async #make(
    { lastId }: State,
    made: { index: string; definition: ResolvedDefinition; is: 'building' | 'live' },
    call: Call,
  ): Promise<AlgoliaGeneration> {
    const id = String(lastId + 1)
    const { index, definition, is } = made
    const indexName = nameOf(index, id)
    await this.#configure(index, indexName, definition, call)
    return { id, state: is, createdAt: new Date(), definition, indexName, liveTurn: 0 }
  }

  async #replace(
    state: State,
    { index, definition }: { index: string; definition: ResolvedDefinition },
    how: EnsuredIndex['state'],
    call: Call,
  ): Promise<readonly [State, EnsuredIndex]> {
    const made = await this.#make(state, { index, definition, is: 'live' }, call)
    const [next] = enthroned(added(state, made), made)
    return [next, { generation: made.id, state: how }]
  }

  async #configure(index: string, indexName: string, definition: ResolvedDefinition, call: Call): Promise<void> {
    const settings = { ...settingsOf(definition), userData: markOf(index) }
    const { taskID } = await this.#api.setSettings(indexName, settings, call)
    await waitForTasks(this.#api, [[indexName, taskID]], call)
  }

  async #isUsed({ indexName }: AlgoliaGeneration, call: Call): Promise<boolean> {
    const [answer] = await this.#api.search([{ indexName, query: '', hitsPerPage: 0 }], call)
    return (answer?.nbHits ?? 0) > 0
  }

  /**
   * Deletes generations that a crash between two steps left behind, or a late write made anew. Those up to the last number were
   * ours; the next one is, if it has our mark. Nothing else is touched, whatever its name begins with.
   */
  async #sweep(index: string, { lastId, generations }: State, call: Call): Promise<void> {
    const known = new Set(generations.map(({ indexName }) => indexName))
    const next = nameOf(index, String(lastId + 1))
    const past = Array.from({ length: lastId }, (_, at) => nameOf(index, String(at + 1)))
    const names = new Set(await this.#api.listIndices(call))
    for (const name of [...past, next]) {
      if (!names.has(name) || known.has(name)) continue
      const ours = name !== next || isMarked((await this.#api.getSettings(name, call))?.userData, index)
      if (!ours) throw refused(`${name} exists and was not made by Hermod: rename it, or choose another index name`)
      await this.#delete(name, call)
    }
  }

  async #delete(indexName: string, call: Call): Promise<void> {
    const { taskID } = await this.#api.deleteIndex(indexName, call)
    await waitForTasks(this.#api, [[indexName, taskID]], call)
  }
}

const refused = (says: string) => new HermodError('HMD_SEARCH_GENERATION', says)
