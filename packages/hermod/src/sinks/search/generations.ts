/**
 * The generations of an index: a short-lived cache of the list, and which one of them is meant.
 */
import { HermodError } from '../../errors.ts'
import type { Generation } from './engine.ts'

type Ask<G> = () => Promise<readonly G[]>

/**
 * Lists are cached for a while, so that not every call asks. A list that was requested before this
 * process changed something is not cached, nor a list without a live generation, which may come any moment.
 */
export class KnownGenerations<G extends Generation> {
  readonly #believedMs: number
  readonly #known = new Map<string, { readonly list: readonly G[]; readonly untilMs: number }>()
  #changes = 0

  constructor(believedMs: number) {
    this.#believedMs = believedMs
  }

  /** The cached list, or a fresh one. */
  async list(index: string, ask: Ask<G>): Promise<readonly G[]> {
    const known = this.#known.get(index)
    if (known !== undefined && performance.now() < known.untilMs) return known.list
    return this.now(index, ask)
  }

  /** Always a fresh list. */
  async now(index: string, ask: Ask<G>): Promise<readonly G[]> {
    const changes = this.#changes
    const untilMs = performance.now() + this.#believedMs
    const list = await ask()
    if (changes !== this.#changes) return list
    if (list.some(({ state }) => state === 'live')) this.#known.set(index, { list, untilMs })
    else this.#known.delete(index)
    return list
  }

  /** This process changed something, or tried to. */
  changed(index: string): void {
    this.#changes++
    this.#known.delete(index)
  }
}

/** The generation asked for, or the live one. */
export function pick<G extends Generation>(generations: readonly G[], index: string, id: string | undefined): G {
  const found = generations.find((one) => (id === undefined ? one.state === 'live' : one.id === id))
  if (found !== undefined) return found
  const what = id === undefined ? `index ${index}` : `generation ${id} of index ${index}`
  throw new HermodError('HMD_SEARCH_INDEX_MISSING', `there is no ${what}`)
}

/** Without the engine's own fields. */
export function told({ id, state, createdAt }: Generation): Generation {
  return { id, state, createdAt }
}
