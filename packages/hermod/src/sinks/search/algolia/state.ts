/**
 * What is known of an index's generations, as one value: read from and written to the `userData` of
 * the index that holds no records. Every change makes a new value; nothing here speaks to Algolia.
 */
import type { ResolvedDefinition } from '../check-definition.ts'
import type { Generation } from '../engine.ts'

export interface AlgoliaGeneration extends Generation {
  readonly definition: ResolvedDefinition
  readonly indexName: string
  /** Counts how often a generation became live; the highest is the latest. 0: never. */
  readonly liveTurn: number
}

export interface State {
  readonly lastId: number
  readonly generations: readonly AlgoliaGeneration[]
}

const EMPTY: State = { lastId: 0, generations: [] }

/** No index that somebody declares can have such a name: they have no `-`. */
export const nameOf = (index: string, id: string) => `${index}-g${id}`

/** What a generation carries, so that nobody else's index is taken for one. */
export const markOf = (index: string) => ({ hermod: { generationOf: index } })

export function isMarked(userData: unknown, index: string): boolean {
  return (userData as { hermod?: { generationOf?: unknown } } | undefined)?.hermod?.generationOf === index
}

export const added = ({ lastId, generations }: State, made: AlgoliaGeneration): State => {
  return { lastId: Math.max(lastId, Number(made.id)), generations: [...generations, made] }
}

export const without = (state: State, id: string): State => {
  return { ...state, generations: state.generations.filter((one) => one.id !== id) }
}

export const replaced = (state: State, changed: AlgoliaGeneration): State => {
  const generations = state.generations.map((one) => (one.id === changed.id ? changed : one))
  return { ...state, generations }
}

/** The live one is retired in the same write. */
export function enthroned(state: State, next: AlgoliaGeneration): readonly [State, AlgoliaGeneration] {
  const liveTurn = Math.max(...state.generations.map((one) => one.liveTurn)) + 1
  const live: AlgoliaGeneration = { ...next, state: 'live', liveTurn }
  const generations = state.generations.map((one): AlgoliaGeneration => {
    if (one.id === next.id) return live
    return one.state === 'live' ? { ...one, state: 'retired' } : one
  })
  return [{ ...state, generations }, live]
}

interface StoredState {
  readonly lastId: number
  readonly generations: readonly {
    readonly id: string
    readonly state: Generation['state']
    readonly createdAt: string
    readonly liveTurn: number
    readonly definition: ResolvedDefinition
  }[]
}

export function userDataOf({ lastId, generations }: State): { hermod: StoredState } {
  const stored = generations.map(({ id, state, createdAt, liveTurn, definition }) => {
    return { id, state, createdAt: createdAt.toISOString(), liveTurn, definition }
  })
  return { hermod: { lastId, generations: stored } }
}

export function stateOf(index: string, userData: unknown): State {
  const { hermod } = (userData ?? {}) as { hermod?: StoredState }
  if (hermod === undefined) return EMPTY
  const generations = hermod.generations.map((one) => {
    return { ...one, createdAt: new Date(one.createdAt), indexName: nameOf(index, one.id) }
  })
  return { lastId: hermod.lastId, generations }
}
