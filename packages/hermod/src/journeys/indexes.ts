/**
 * The indexes declared in this process, and the journeys that work on them. Workers carry the
 * journeys out, start those that are scheduled, and drop former generations when their time is up.
 */
import { checkOptions, flag, integer, optional } from '../check-options.ts'
import { type Database, select } from '../database.ts'
import type { Decided, Decision } from '../desk/audit.ts'
import { HermodError } from '../errors.ts'
import { didYouMean } from '../nearest.ts'
import type { Generation } from '../sinks/search/engine.ts'
import type { ResolvedSubscription } from '../subscription-options.ts'
import { type Listener, notify } from '../telemetry.ts'
import { backfill } from './backfill.ts'
import { DeclaredIndex, type IndexOptions, type VerifySchedule } from './declared-index.ts'
import { createJourney, findJourney, type Journey, type JourneyKind } from './journey.ts'
import type { Journeys } from './journeys.ts'
import { Rebuild, type RebuildContext, type RebuildPlan } from './rebuild.ts'
import { rollBack } from './roll-back.ts'
import { JourneyStopped, type Run } from './runner.ts'
import { slotOf } from './schedule.ts'
import { type VerifyPlan, verify } from './verify.ts'

const LAST = `select 1 from outbox.journey where kind = $1 and subject = $2 and (ended_at is null or created_at >= $3::timestamptz) limit 1`
const OVER = `select id::text, subject, result ->> 'former' as former from outbox.journey
  where kind = 'rebuild' and state = 'succeeded' and subject = any ($1::text[]) and result ->> 'keepUntil' is not null
    and result ->> 'droppedAt' is null and (result ->> 'keepUntil')::timestamptz <= outbox.clock() order by journey.id limit 10`
const DROPPING = `update outbox.journey set phase = 'drop', updated_at = outbox.clock() where id = $1::bigint`
const DROPPED = `update outbox.journey set updated_at = outbox.clock(),
  result = result || jsonb_build_object('droppedAt', outbox.clock()) where id = $1::bigint`

export interface IndexesContext {
  readonly db: Database
  readonly journeys: Journeys
  readonly listener: Listener
  readonly replay: RebuildContext['replay']
  subscription(name: string): ResolvedSubscription | undefined
}

export type Started = Journey & Decided

/** What a rebuild would do. */
export interface RebuildPreview {
  readonly index: string
  readonly engine: string
  readonly source: string
  readonly subscription: string
  /** Rows to load; estimated beyond 100,000. */
  readonly rows: number
  readonly generations: readonly Generation[]
}

const rebuildSpec = {
  keepMs: optional(integer({ min: 0, max: 366 * 86_400_000 })),
  rollback: flag(false),
}
const verifySpec = {
  repair: flag(false),
  sample: optional(integer({ min: 1, max: 1_000_000 })),
  fast: flag(false),
}

export class Indexes {
  readonly #context: IndexesContext
  readonly #declared = new Map<string, DeclaredIndex>()

  constructor(context: IndexesContext) {
    this.#context = context
    const { journeys } = context
    const subjects = () => this.names
    journeys
      .handle({
        kind: 'rebuild',
        subjects,
        run: (run) => this.#rebuild(run, context),
        undo: (run) => Rebuild.undo(run, this.named(run.journey.subject)),
      })
      .handle({
        kind: 'verify',
        subjects,
        parallelMax: 2,
        run: (run) => verify(run, this.named(run.journey.subject), context),
      })
      .handle({
        kind: 'backfill',
        subjects,
        run: (run) => backfill(run, this.named(run.journey.subject), context),
      })
      .also(() => this.tick())
  }

  declare(name: string, options: IndexOptions): DeclaredIndex {
    if (this.#declared.has(name)) {
      const says = `the index ${name} is declared twice`
      throw new HermodError('HMD_INDEX_CONFLICT', says, { field: 'name' })
    }
    const index = new DeclaredIndex(name, options, this.#context.db)
    this.#declared.set(name, index)
    this.#context.journeys.wake()
    return index
  }

  get names(): string[] {
    return [...this.#declared.keys()]
  }

  named(name: string): DeclaredIndex {
    const found = this.#declared.get(name)
    if (found !== undefined) return found
    const hint = didYouMean(name, this.names)
    const known = this.names.length === 0 ? 'none is declared' : `declared: ${this.names.join(', ')}`
    throw new HermodError('HMD_INDEX_UNKNOWN', `there is no index ${name}${hint} (${known})`)
  }

  /** Closes the engines. Calling it twice is harmless. */
  async close(): Promise<void> {
    const engines = new Set([...this.#declared.values()].map(({ engine }) => engine))
    await Promise.all([...engines].map((engine) => engine.close()))
  }

  /** Queues the journey; a worker runs it. */
  rebuild(name: string, given: RebuildPlan, by: Decision): Promise<Started> {
    const plan = checkOptions('rebuild', given, rebuildSpec)
    return this.#start('rebuild', name, plan, by)
  }

  verify(name: string, given: VerifyPlan, by: Decision): Promise<Started> {
    const plan = checkOptions('verify', given, verifySpec)
    const index = this.named(name)
    const refresh = index.refreshOf(this.#context.subscription(index.subscription))
    if (plan.repair && typeof refresh === 'string') {
      throw new HermodError('HMD_REPAIR_IMPOSSIBLE', `${name} cannot be repaired: ${refresh}`)
    }
    return this.#start('verify', name, plan, by)
  }

  backfill(name: string, by: Decision): Promise<Started> {
    return this.#start('backfill', name, {}, by)
  }

  /** What a rebuild would do, without doing it. */
  async preview(name: string): Promise<RebuildPreview> {
    const { engine, source, subscription } = this.named(name)
    const generations = await engine.generations(name)
    const rows = await source.count(this.#context.db)
    return {
      index: name,
      engine: engine.name,
      source: source.name,
      subscription,
      rows,
      generations,
    }
  }

  /** Starts what is due and drops generations that were kept long enough. Errors are reported, not thrown. */
  async tick(): Promise<void> {
    if (this.#declared.size === 0) return
    for (const index of this.#declared.values()) {
      await this.#guard(`schedule of ${index.name}`, () => this.#startScheduled(index))
    }
    await this.#guard('former generations', () => this.#dropFormer())
  }

  async #start(kind: JourneyKind, name: string, plan: object, by: Decision): Promise<Started> {
    this.named(name)
    const journey = await createJourney(this.#context.db, { kind, subject: name, plan }, by)
    this.#context.journeys.wake()
    return journey
  }

  async #rebuild(run: Run, context: RebuildContext): Promise<object> {
    const index = this.named(run.journey.subject)
    if ((run.journey.plan as RebuildPlan).rollback) return rollBack(run, index, context)
    try {
      return await new Rebuild(run, index, context).run()
    } catch (error) {
      if (error instanceof HermodError) await Rebuild.giveUp(run, index)
      throw error
    }
  }

  async #startScheduled(index: DeclaredIndex): Promise<void> {
    const { rebuild, verify } = index.schedule
    if (rebuild !== undefined) {
      await this.#startAt('rebuild', index, slotOf(rebuild, Date.now()), {})
    }
    if (verify !== undefined) {
      const { repair = false, sample, fast = false } = verify as VerifySchedule
      const plan = { repair, fast, ...(sample !== undefined && { sample }) }
      await this.#startAt('verify', index, slotOf(verify, Date.now()), plan)
    }
  }

  /** All workers use the same request id, so that only one journey is created. */
  async #startAt(kind: 'rebuild' | 'verify', index: DeclaredIndex, slot: Date | undefined, plan: object) {
    if (slot === undefined) return
    const at = slot.toISOString()
    const [last] = await select(this.#context.db, LAST, [kind, index.name, at])
    if (last !== undefined) return
    if (kind === 'rebuild' && (await isYounger(index, slot))) return
    const requestId = `schedule:${kind}:${index.name}:${at}`
    await this.#start(kind, index.name, plan, { actor: 'schedule', requestId })
  }

  async #dropFormer(): Promise<void> {
    const rows = await select(this.#context.db, OVER, [this.names])
    for (const { id, subject, former } of rows) {
      const { engine, name } = this.named(subject as string)
      await select(this.#context.db, DROPPING, [id as string])
      await this.#tell(id as string)
      const found = (await engine.generations(name)).find((one) => one.id === former)
      if (found?.state === 'retired') await engine.dropGeneration(name, found.id)
      await select(this.#context.db, DROPPED, [id as string])
      await this.#tell(id as string)
    }
  }

  async #tell(of: string): Promise<void> {
    const journey = await findJourney(this.#context.db, BigInt(of))
    if (journey === undefined) return
    const { id, kind, subject, state, phase, progress } = journey
    notify(this.#context.listener, 'journey', { id, kind, subject, state, phase, progress })
  }

  async #guard(during: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (error instanceof JourneyStopped) throw error
      notify(this.#context.listener, 'error', { during, error })
    }
  }
}

/** The index was filled after the slot began, so nothing is due yet. */
async function isYounger({ engine, name }: DeclaredIndex, slot: Date): Promise<boolean> {
  const live = (await engine.generations(name)).find(({ state }) => state === 'live')
  return live === undefined || live.createdAt >= slot
}
