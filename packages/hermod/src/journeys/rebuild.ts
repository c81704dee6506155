/**
 * rebuild: fills a new generation beside the one that is searched, and swaps. Every phase may be
 * repeated: the engine says what exists, and the journey's progress says what was done.
 *
 *   create ─▶ load ─▶ catch-up ─▶ verify ─▶ swap ─▶ settle ─▶ keep (─▶ drop)
 *
 * Writes reach every generation from `create` on. A replay from the position noted then makes up for
 * processes that used the old list of generations a little longer, or wrote during the swap.
 */
import { HermodError } from '../errors.ts'
import type { Generation } from '../sinks/search/engine.ts'
import type { ResolvedSubscription } from '../subscription-options.ts'
import { Comparison } from './compare.ts'
import type { DeclaredIndex } from './declared-index.ts'
import { engineCall } from './engine-call.ts'
import { LoadRows } from './load-rows.ts'
import { untilPassed } from './passing.ts'
import { floorOf, numberedHead } from './position.ts'
import type { Run } from './runner.ts'
import { holdLog, type Replay, sendAgain } from './send-again.ts'
import { driftOf, lookingOf, refreshAll } from './verify.ts'

export const rebuildPhases = [...(['create', 'load', 'catch-up', 'verify', 'swap', 'settle', 'keep', 'drop'] as const)]
export type RebuildPhase = (typeof rebuildPhases)[number]

export interface RebuildPlan {
  readonly keepMs?: number
  /** Only go back to the generation that was live before. */
  readonly rollback?: boolean
}

export interface RebuildResult {
  /** The generation that is live now. */
  readonly generation: string
  /** The former generation, and until when it is kept. */
  readonly former: string | null
  readonly keepUntil: string | null
  readonly documents: number
  readonly rejected: number
  readonly rejections: unknown
}

export interface RebuildContext {
  /** Sends everything after this position again, through the same lanes, and waits for it. */
  readonly replay: Replay
  subscription(name: string): ResolvedSubscription | undefined
}

/** If more documents than this keep changing, map() probably gives a different result each time. */
const movingMin = 100
const movingShare = 0.05

const forgotten = {
  generation: null,
  former: null,
  from: null,
  after: null,
  loaded: null,
  caughtUp: null,
  known: null,
  verified: null,
  waiting: null,
  rejected: 0,
  rejections: [],
}

export class Rebuild {
  readonly #run: Run
  readonly #index: DeclaredIndex
  readonly #context: RebuildContext

  constructor(run: Run, index: DeclaredIndex, context: RebuildContext) {
    this.#run = run
    this.#index = index
    this.#context = context
  }

  async run(): Promise<RebuildResult> {
    if (!this.#swapped()) {
      await this.#create()
      await this.#load()
      await this.#catchUp()
      await this.#verify()
    }
    await this.#swap()
    await this.#settle()
    return this.#keep()
  }

  /** A rebuild that is resumed after a failure starts again. */
  static async giveUp(run: Run, index: DeclaredIndex): Promise<void> {
    if (run.progress.swapFrom != null) return
    await Rebuild.undo(run, index)
    await run.note({ ...forgotten, done: 0 })
  }

  /** After a cancel: drops the unfinished generation. A finished swap is not undone. */
  static async undo(run: Run, index: DeclaredIndex): Promise<void> {
    const { generation } = run.progress
    const made = (await engineCall(run, index, (call) => index.engine.generations(index.name, call))).find(
      ({ id, state }) => state === 'building' && (generation == null || id === generation),
    )
    if (made === undefined) return
    await engineCall(run, index, (call) => index.engine.dropGeneration(index.name, made.id, call))
  }

  /** Drops an unfinished generation of somebody else: nobody knows what is in it. */
  async #create(): Promise<void> {
    const { name, engine, definition } = this.#index
    if (this.#run.progress.generation == null) {
      await this.#run.note({ total: await this.#index.source.count(this.#run.db), done: 0 }, 'create')
      await this.#call((call) => engine.ensureIndex(name, definition, call))
      const left = (await this.#generations()).find(({ state }) => state === 'building')
      if (left !== undefined) await this.#call((call) => engine.dropGeneration(name, left.id, call))
      const made = await this.#call((call) => engine.createGeneration(name, definition, call))
      const after = await numberedHead(this.#run.db, this.#run)
      await holdLog(this.#run, after)
      const former = (await this.#generations()).find(({ state }) => state === 'live')
      await this.#run.note({
        generation: made.id,
        former: former?.id ?? null,
        from: String(after),
        createdMs: Date.now(),
      })
    }
    await this.#assertMine()
    await this.#known()
  }

  /** From this position on, all processes write to the new generation too. */
  async #known(): Promise<void> {
    const { createdMs, known } = this.#run.progress
    const { generationsMs } = this.#index.engine
    if (!generationsMs || known != null) return
    const leftMs = Number(createdMs) + generationsMs - Date.now()
    if (leftMs > 0) await this.#run.pause(Math.min(leftMs, generationsMs))
    await this.#run.note({ known: String(await numberedHead(this.#run.db, this.#run)) })
  }

  async #load(): Promise<void> {
    if (this.#run.progress.loaded === true) return
    await this.#run.note({}, 'load')
    await new LoadRows(this.#run, this.#index, this.#generation).run()
  }

  /**
   * Calls that began with the old list of generations have ended when the subscription has passed a
   * position noted after that list was forgotten; then everything since the beginning is sent again.
   */
  async #catchUp(): Promise<void> {
    if (this.#run.progress.caughtUp === true) return
    await this.#run.note({}, 'catch-up')
    await untilPassed(this.#run, this.#index.subscription)
    const { from, known } = this.#run.progress
    await sendAgain(this.#run, this.#index, this.#context, from, known)
    await this.#run.note({ caughtUp: true })
  }

  /**
   * What differs is loaded once more, and what is still different then is told again: so rows that
   * changed without an event are repaired. If differences remain, there is no swap.
   */
  async #verify(): Promise<void> {
    if (this.#run.progress.verified === true) return
    await this.#run.note({ compared: 0 }, 'verify')
    // This journey has just written them: nobody else knows the generation.
    const looking = lookingOf(this.#run, this.#index, { generation: this.#generation, fast: true })
    await Comparison.with(looking, async (comparison) => {
      let found = await comparison.all()
      const refused = new Set<string>()
      for (const heal of [this.#loadAgain, this.#refresh]) {
        if (driftOf(found) - refused.size <= 0) break
        await heal.call(this, comparison, refused)
        found = await comparison.check()
      }
      const { missing, orphaned, stale, moving, examples } = found
      const verified = { missing, orphaned, stale, moving, refused: refused.size, examples }
      await this.#run.note({ verification: verified })
      const unsteady = moving > Math.max(movingMin, found.source * movingShare)
      if (driftOf(found) - refused.size > 0 || unsteady) throw differs(this.#index.name, verified)
    })
    await this.#run.note({ verified: true })
  }

  async #loadAgain(comparison: Comparison, refused: Set<string>): Promise<void> {
    const { name, engine, source } = this.#index
    const generation = this.#generation
    let after = ''
    for (;;) {
      const page = await comparison.found(after, 500)
      const last = page.at(-1)
      if (last === undefined) return
      after = last.id
      const ids = page.map(({ id }) => id)
      const rows = await source.find(this.#run.db, ids)
      const { position: version } = rows
      const upserts = rows.documents.map(({ id, json }) => ({ id, json, version }))
      const there = new Set([...upserts, ...rows.refused].map(({ id }) => id))
      const gone = ids.filter((id) => !there.has(id)).map((id) => ({ id, version }))
      const outcomes = await this.#call((call) => engine.upsert(name, upserts, { ...call, generation }))
      for (const [at, { outcome }] of outcomes.entries()) {
        if (outcome === 'rejected') refused.add(upserts[at]?.id as string)
      }
      if (gone.length > 0) await this.#call((call) => engine.delete(name, gone, { ...call, generation }))
    }
  }

  /** The same position is not a newer version: a new event is emitted, which has a higher one. */
  async #refresh(comparison: Comparison, refused: ReadonlySet<string>): Promise<void> {
    const { subscription } = this.#index
    const refresh = this.#index.refreshOf(this.#context.subscription(subscription))
    if (typeof refresh !== 'string') await refreshAll(this.#run, comparison, refresh, refused)
  }

  /** Only the generation of this journey is ever swapped in. */
  async #swap(): Promise<void> {
    if (this.#run.progress.settled === true) return
    const { name, engine, subscription } = this.#index
    if (!this.#swapped()) {
      const floor = await floorOf(this.#run.db, subscription)
      await this.#run.note({ swapFrom: String(floor) }, 'swap')
    }
    const mine = await this.#mine()
    if (mine?.state === 'live') return
    await this.#assertMine()
    await this.#run.note({})
    await this.#call((call) => engine.swapGeneration(name, call))
    await this.#run.note({ swapped: true })
  }

  /** Calls in flight during the swap may have missed one of the two generations. */
  async #settle(): Promise<void> {
    if (this.#run.progress.settled === true) return
    const { subscription, engine } = this.#index
    await this.#run.note({ swapped: true }, 'settle')
    if (engine.generationsMs) await this.#run.pause(engine.generationsMs)
    const passed = await untilPassed(this.#run, subscription)
    await sendAgain(this.#run, this.#index, this.#context, this.#run.progress.swapFrom, passed)
    await this.#run.note({ settled: true })
  }

  async #keep(): Promise<RebuildResult> {
    const { keepMs = this.#index.keepMs } = this.#run.journey.plan as RebuildPlan
    const { former, done, rejected, rejections } = this.#run.progress
    await this.#run.note({}, 'keep')
    return {
      generation: this.#generation,
      former: (former as string | null) ?? null,
      keepUntil: former == null ? null : new Date(Date.now() + keepMs).toISOString(),
      documents: done ?? 0,
      rejected: Number(rejected ?? 0),
      rejections: rejections ?? [],
    }
  }

  get #generation(): string {
    return this.#run.progress.generation as string
  }

  #swapped(): boolean {
    return this.#run.progress.swapFrom != null
  }

  #generations(): Promise<readonly Generation[]> {
    return this.#call((call) => this.#index.engine.generations(this.#index.name, call))
  }

  async #mine(): Promise<Generation | undefined> {
    return (await this.#generations()).find(({ id }) => id === this.#generation)
  }

  async #assertMine(): Promise<void> {
    if ((await this.#mine())?.state === 'building') return
    const says = `generation ${this.#generation} of ${this.#index.name} is no longer building: somebody dropped or swapped it`
    throw new HermodError('HMD_REBUILD_LOST', says)
  }

  #call<T>(work: (call: { signal: AbortSignal }) => Promise<T>): Promise<T> {
    return engineCall(this.#run, this.#index, work)
  }
}

type Differing = Readonly<Record<'missing' | 'orphaned' | 'stale' | 'moving', number>>

function differs(index: string, found: Differing) {
  const { missing, orphaned, stale, moving } = found
  const says = `the new generation of ${index} is not what the source says (${missing} missing, ${orphaned} orphaned, ${stale} stale, ${moving} different at every look), so it was not swapped in`
  return new HermodError('HMD_REBUILD_DIFFERS', says, { details: found })
}
