/**
 * The public door: one object per database that emits, subscribes, works and answers questions. It
 * assembles; every verb lives in its own file.
 */
import { bounded, statementMs } from './bounded.ts'
import { refuse } from './check-options.ts'
import { type Database, type PoolClient, preparing, transaction } from './database.ts'
import type { DefinedEvents, NewEventOf } from './define-events.ts'
import * as desk from './desk/desk.ts'
import { HermodError } from './errors.ts'
import type { NewEvent } from './event.ts'
import type { EventDefinitions } from './event-definitions.ts'
import { definitions as storedUnder } from './flow/define.ts'
import { type Aggregate, type EmitOptions, emit, lock, Waiting } from './flow/emit.ts'
import { assertSequencer } from './flow/sequence.ts'
import { subscribe } from './flow/subscribe.ts'
import { unwatch, type WatchOptions, watch } from './flow/watch.ts'
import { hearPool } from './hear-pool.ts'
import { once } from './inbox.ts'
import type { DeclaredIndex, IndexOptions } from './journeys/declared-index.ts'
import { Indexes, type RebuildPreview, type Started } from './journeys/indexes.ts'
import { Journeys } from './journeys/journeys.ts'
import type { RebuildPlan } from './journeys/rebuild.ts'
import { replayWithin } from './journeys/replay.ts'
import type { VerifyPlan } from './journeys/verify.ts'
import { assertLanes, assertMigrated, type MigrateResult, migrate } from './migrate.ts'
import { didYouMean } from './nearest.ts'
import {
  checkTogether,
  type OutboxOptions,
  outboxOptions,
  outlivingLease,
  type ResolvedOutboxOptions,
  type ResolvedSubscription,
  type SubscriptionOptions,
  subscriptionOptions,
  type WorkerOptions,
  workerOptions,
} from './options.ts'
import { type MakeSink, type SinkKindOptions, SinkKinds } from './sink-kinds.ts'
import { Subscriptions } from './subscriptions.ts'
import { tell } from './worker/news.ts'
import { Worker } from './worker/worker.ts'

/** At most one NOTIFY per this time: one per transaction would cost more than it saves. */
const wakeEveryMs = 10
/** Upkeep drops partitions and analyses tables. */
const upkeepLimitMs = 600_000
/** Time limit of a NOTIFY: a later hint is useless. */
const hintLimitMs = 5_000

type EventOf<D> = D extends DefinedEvents<infer _> ? NewEventOf<D> : NewEvent

export class Outbox<D extends EventDefinitions | undefined = undefined> {
  readonly db: Database
  /** Long work that survives its process: replay, rebuild, verify. */
  readonly journeys: Journeys
  /** Subscriptions made at run time: stored in the database, served by every worker that has their kind of sink. */
  readonly subscriptions: Subscriptions
  readonly #kinds = new SinkKinds()
  readonly #options: ResolvedOutboxOptions
  readonly #indexes: Indexes
  readonly #subscriptions = new Map<string, ResolvedSubscription>()
  readonly #workers = new Set<Worker>()
  #waking = false
  #wakeAgain = false

  constructor(options: OutboxOptions) {
    this.#options = outboxOptions(options)
    this.db = this.#options.pool as unknown as Database
    hearPool(this.#options.pool, this.#options.listener)
    this.journeys = new Journeys(this.db, this.#options.listener)
    this.subscriptions = new Subscriptions(this.db, this.#kinds)
    this.#indexes = new Indexes({
      db: this.db,
      journeys: this.journeys,
      listener: this.#options.listener,
      replay: (run, name, ...range) => replayWithin(run, this.journeys, name, ...range),
      subscription: (name) => this.#subscriptions.get(name),
    })
  }

  /** Brings the schema up to date; safe from any number of processes at once. */
  migrate(): Promise<MigrateResult> {
    return migrate(this.db, { lanes: this.#options.lanes })
  }

  /** Inside your transaction: `tx` is whatever your client library calls a transaction. */
  emit(tx: unknown, events: EventOf<D> | readonly EventOf<D>[]): Promise<bigint[]> {
    return emit(tx, events as NewEvent | readonly NewEvent[], this.#emitOptions())
  }

  /** Locks aggregates until the transaction ends: lock, read, write, emit. */
  lock(tx: unknown, aggregates: readonly Aggregate[]): Promise<void> {
    return lock(tx, aggregates)
  }

  /**
   * Runs `work` in a transaction and wakes the workers after the commit. Events given to its `emit` travel
   * with COMMIT, in one message: no round trip of their own.
   */
  async transaction<T>(
    work: (tx: PoolClient, emit: (events: EventOf<D> | readonly EventOf<D>[]) => void) => Promise<T>,
  ): Promise<T> {
    const waiting = new Waiting(this.#emitOptions())
    const add = (events: EventOf<D> | readonly EventOf<D>[]) => waiting.add(events as NewEvent | readonly NewEvent[])
    const result = await transaction(
      this.db,
      (tx) => work(tx, add),
      (tx) => waiting.commit(tx),
    ).finally(() => waiting.close())
    this.wake()
    return result
  }

  /** Once per message and consumer, in the same transaction as what it writes. */
  once<T>(tx: unknown, consumer: string, messageId: string, work: () => Promise<T>): Promise<T | undefined> {
    return once(tx, consumer, messageId, work)
  }

  /** Captures a table by triggers: rows written by any program become events. True: changed. */
  watch(table: string, options: WatchOptions): Promise<boolean> {
    const sinks = [...this.#subscriptions.values()].map(({ sink }) => sink)
    return watch(this.db, table, options, sinks.flatMap(tablesOf))
  }

  /** Removes what watch() installed. True: it was watched. */
  unwatch(table: string): Promise<boolean> {
    return unwatch(this.db, table)
  }

  /** Declares a subscription; it is installed when a worker starts, or at once by those that run here. */
  subscribe(name: string, options: SubscriptionOptions): this {
    const subscription = subscriptionOptions(name, options)
    if (this.#subscriptions.has(name)) {
      throw new HermodError('HMD_SUBSCRIPTION_CONFLICT', `${name} is subscribed twice`, {
        field: 'name',
      })
    }
    this.#serve(subscription)
    return this
  }

  /**
   * Serves it no more in this process: its calls end and are settled, its lanes are given back, its sink is closed.
   * With `remove` it is deleted for everybody.
   */
  async unsubscribe(name: string): Promise<undefined>
  async unsubscribe(name: string, remove: { readonly remove: true } & desk.RemoveOptions): Promise<desk.RemoveResult>
  async unsubscribe(
    name: string,
    options?: { readonly remove: true } & desk.RemoveOptions,
  ): Promise<desk.RemoveResult | undefined> {
    const subscription = this.#subscriptions.get(name)
    if (subscription === undefined && options === undefined) {
      const meant = didYouMean(String(name), this.#subscriptions.keys())
      throw new HermodError('HMD_SUBSCRIPTION_UNKNOWN', `nothing is subscribed as ${name} here${meant}`)
    }
    this.#subscriptions.delete(name)
    await Promise.all([...this.#workers].map((worker) => worker.unserve(name)))
    try {
      // After its calls have ended: what they delivered is not discarded.
      return options && (await desk.remove(this.db, name, options))
    } catch (error) {
      if (subscription !== undefined) this.#serve(subscription)
      throw error
    } finally {
      if (subscription !== undefined && !this.#subscriptions.has(name)) await subscription.sink.close?.()
    }
  }

  #serve(subscription: ResolvedSubscription): void {
    const { name } = subscription
    const serving = [...this.#workers].filter(({ options }) => options.subscriptions?.includes(name) ?? true)
    for (const { options } of serving) refuse('subscribe', outlivingLease(options, [subscription]))
    this.#subscriptions.set(name, subscription)
    for (const worker of serving) void worker.serve(subscription)
  }

  /** Registers a kind of sink for subscriptions made at run time: how a sink is made of their settings. */
  sinkKind(kind: string, make: MakeSink, options: SinkKindOptions = {}): this {
    this.#kinds.register(kind, make, options)
    for (const worker of this.#workers) worker.reconsider()
    return this
  }

  /** Declares a search index: what rebuild, verify and backfill work on. */
  index(name: string, options: IndexOptions): DeclaredIndex {
    return this.#indexes.declare(name, options)
  }

  /** Fills the index anew beside the one that is searched, and swaps. Workers carry it out. */
  rebuild(index: string, plan: RebuildPlan, by: desk.Decision): Promise<Started> {
    return this.#indexes.rebuild(index, plan, by)
  }

  /** What a rebuild would do, without doing it. */
  previewRebuild(index: string): Promise<RebuildPreview> {
    return this.#indexes.preview(index)
  }

  /** Compares the index with its source; `repair` makes the subscription read what differs again. */
  verify(index: string, plan: VerifyPlan, by: desk.Decision): Promise<Started> {
    return this.#indexes.verify(index, plan, by)
  }

  /** Fills the index that is there from its source, in place. */
  backfill(index: string, by: desk.Decision): Promise<Started> {
    return this.#indexes.backfill(index, by)
  }

  /** Starts a worker in this process. */
  async start(options: WorkerOptions = {}): Promise<Worker> {
    const worker = await this.#worker(options)
    // Before it has started: a subscription that comes meanwhile is for this worker too.
    this.#workers.add(worker)
    await worker.start().catch((error) => {
      this.#workers.delete(worker)
      throw error
    })
    return worker
  }

  /** Delivers what there is, then returns: for cron and serverless. */
  async runOnce({ deadlineMs = 30_000, ...options }: WorkerOptions & { deadlineMs?: number } = {}): Promise<void> {
    const worker = await this.#worker({ listen: false, ...options })
    await worker.once(deadlineMs)
  }

  /** Stops the workers of this process and closes the sinks. The pool is yours to end. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()))
    await Promise.all([...this.#subscriptions.values()].map(({ sink }) => sink.close?.()))
    await this.#indexes.close()
  }

  /** Wakes the workers of this process at once, and others through NOTIFY, at most every few milliseconds. */
  wake(): void {
    for (const worker of this.#workers) worker.wake()
    this.#wakeAgain = this.#waking
    if (this.#waking) return
    this.#waking = true
    void tell(bounded(this.db, hintLimitMs), { what: 'committed' })
    setTimeout(() => {
      this.#waking = false
      if (this.#wakeAgain) this.wake()
    }, wakeEveryMs).unref()
  }

  /** The state of every subscription. A count that takes too long is null, never zero. */
  stats(options?: desk.StatsOptions): Promise<desk.Stats> {
    return desk.stats(this.db, options)
  }

  /** Finds events, newest first; pass the cursor of the previous page to get the next one. */
  find(filter?: desk.FindFilter, options?: desk.FindOptions): Promise<desk.FoundPage> {
    return desk.find(this.db, filter, options)
  }

  /** Everything that happened to one event: by the id emit gave, or `{ position }`. */
  event(which: desk.EventName, options?: { payload?: boolean }): Promise<desk.EventStory | undefined> {
    return desk.show(this.db, which, options)
  }

  deadLetters(options?: desk.DeadOptions): Promise<desk.DeadLetter[]> {
    return desk.deadLetters(this.db, options)
  }

  deadGroups(options?: Omit<desk.DeadOptions, 'before' | 'group'>): Promise<desk.DeadGroup[]> {
    return desk.deadGroups(this.db, options)
  }

  /** Dead, unknown and retrying deliveries become due now, at a position or all that match. */
  retry(subscription: string, which: desk.Which, by: desk.RetryOptions): Promise<desk.RetryResult> {
    return this.#acted(desk.retry(this.db, subscription, which, by))
  }

  /** Gives deliveries up, with a reason; events blocked by them are delivered. */
  discard(subscription: string, which: desk.Which, by: desk.DiscardOptions): Promise<desk.DiscardResult> {
    return this.#acted(desk.discard(this.db, subscription, which, by))
  }

  /** Replaces payload or headers of one delivery; the event itself never changes. */
  correct(
    subscription: string,
    position: bigint | number | string,
    correction: desk.Correction,
    by: desk.Decision,
  ): Promise<desk.CorrectResult> {
    return this.#acted(desk.correct(this.db, subscription, position, correction, by))
  }

  pause(subscription: string, by: desk.Decision): Promise<desk.ModeResult> {
    return desk.pause(this.db, subscription, by)
  }

  resume(subscription: string, by: desk.Decision): Promise<desk.ModeResult> {
    return this.#acted(desk.resume(this.db, subscription, by))
  }

  /** Live, dry-run or paused; ending a dry run asks `from`. */
  mode(subscription: string, mode: desk.Mode, by: desk.ModeOptions): Promise<desk.ModeResult> {
    return this.#acted(desk.setMode(this.db, subscription, mode, by))
  }

  /** The decisions of operators, newest first. */
  audit(options?: desk.AuditOptions): Promise<desk.AuditRow[]> {
    return desk.auditTrail(this.db, options)
  }

  #emitOptions(): EmitOptions {
    const { events: known, clock, listener, prepare } = this.#options
    return { known, nowMs: clock(), listener, prepare }
  }

  /** There may be something to do now. */
  async #acted<T>(work: Promise<T>): Promise<T> {
    const result = await work
    this.wake()
    return result
  }

  async #worker(given: WorkerOptions): Promise<Worker> {
    const options = workerOptions(given)
    const all = [...this.#subscriptions.values()]
    const { subscriptions: only } = options
    const stored = only === undefined ? [] : await storedUnder(this.db, only).catch(() => [])
    checkTogether(
      options,
      all,
      this.#options.pool.options?.max,
      stored.map(({ name }) => name),
    )
    const served = only === undefined ? all : all.filter(({ name }) => only.includes(name))
    await assertMigrated(this.db)
    await assertLanes(this.db, this.#options.lanes)
    await assertSequencer(this.db)
    for (const subscription of served) await subscribe(this.db, subscription)
    const { listener, random, events: definitions } = this.#options
    const db = bounded(this.db, statementMs(options.leaseMs))
    return new Worker({
      db: this.#options.prepare ? preparing(db) : db,
      upkeepDb: bounded(this.db, upkeepLimitMs),
      subscriptions: served,
      options,
      listener,
      definitions,
      random,
      journeys: this.journeys,
      kinds: this.#kinds,
    })
  }
}

/** Tables that sinks write: capturing one of them would make a sink trigger itself. */
function tablesOf(sink: object): readonly string[] {
  const { tables } = sink as { tables?: unknown }
  return Array.isArray(tables) ? tables.map(String) : []
}

export function createOutbox<const O extends OutboxOptions>(
  options: O,
): Outbox<O extends { readonly events: infer D extends EventDefinitions } ? D : undefined> {
  return new Outbox(options)
}
