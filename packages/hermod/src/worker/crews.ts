/**
 * Who is served in one worker, while subscriptions come and go: those declared in code, and those stored in the database
 * whose kind of sink this process has. Each change concerns one crew; the others do not notice.
 */
import { type Database, isConnectionError } from '../database.ts'
import { HermodError, type HermodErrorCode } from '../errors.ts'
import { definitions, type Stored } from '../flow/define.ts'
import { subscribe } from '../flow/subscribe.ts'
import { outlivingLease, type ResolvedSubscription, type ResolvedWorkerOptions } from '../options.ts'
import { redacted, type SinkKinds } from '../sink-kinds.ts'
import { type Listener, notify } from '../telemetry.ts'
import type { Crew } from './crew.ts'
import type { Registry, Serving } from './registry.ts'

export interface CrewsContext {
  readonly db: Database
  readonly kinds: SinkKinds
  readonly registry: Registry
  readonly listener: Listener
  readonly options: ResolvedWorkerOptions
  crew(subscription: ResolvedSubscription): Crew
  /** Crews came or went. */
  changed(): void
}

export class Crews {
  readonly #context: CrewsContext
  readonly #crews = new Map<string, Crew>()
  /** Declared while the worker runs, and not installed yet. */
  readonly #arriving = new Set<ResolvedSubscription>()
  /** Stored ones: their crews are made and retired by what the database says. */
  readonly #stored = new Set<string>()
  readonly #changing = new Map<string, Promise<void>>()
  /** Revisions whose sink could not be made: not tried again before they change. */
  readonly #refused = new Map<string, number>()
  readonly #warned = new Set<string>()
  #running = false
  #ended = false

  constructor(context: CrewsContext, declared: readonly ResolvedSubscription[]) {
    this.#context = context
    for (const subscription of declared) this.#crews.set(subscription.name, context.crew(subscription))
  }

  get all(): Iterable<Crew> {
    return this.#crews.values()
  }

  named(name: string): Crew | undefined {
    return this.#crews.get(name)
  }

  get serving(): Serving {
    const { registry, kinds } = this.#context
    // What is outdated here is not served, and has no share of the lanes.
    const served = [...this.#crews.values()].filter(({ subscription }) => !registry.state(subscription).outdated)
    return { names: served.map(({ subscription: { name } }) => name), kinds: kinds.names }
  }

  /** From now on whoever comes begins at once. */
  run(): void {
    this.#running = true
    for (const crew of this.all) crew.begin()
    this.#context.changed()
  }

  /** A subscription declared in code after the start. */
  serve(subscription: ResolvedSubscription): Promise<void> {
    this.#arriving.add(subscription)
    return this.#install()
  }

  /** Resolves when its calls have ended and its lanes are given back. */
  async unserve(name: string): Promise<void> {
    for (const arriving of this.#arriving) if (arriving.name === name) this.#arriving.delete(arriving)
    await this.#change(name, () => this.#retire(name))
  }

  /** Compares what is served with what the database says; after each beat. */
  async follow(): Promise<void> {
    if (this.#ended) return
    await this.#install()
    for (const name of this.#crews.keys()) this.#lookForRow(name)
    for (const name of this.#refused.keys()) if (!this.#context.registry.rows.has(name)) this.#refused.delete(name)
    const missing = this.#missing()
    if (missing.length === 0) return
    const found = await definitions(this.#context.db, missing)
    await Promise.all(found.map((stored) => this.#change(stored.name, () => this.#serveStored(stored))))
  }

  /** All of them end. */
  async end(): Promise<void> {
    this.#ended = true
    this.#arriving.clear()
    await Promise.all([...this.#crews.keys()].map((name) => this.#change(name, () => this.#retire(name))))
    await Promise.all(this.#changing.values())
  }

  /** A failover may have brought other definitions under the revisions that are served here: all are made anew. */
  async newEpoch(): Promise<void> {
    this.#refused.clear()
    await Promise.all([...this.#stored].map((name) => this.#change(name, () => this.#retire(name))))
    await this.follow()
  }

  /** What was refused is tried again: a kind of sink was registered. */
  reconsider(): void {
    this.#refused.clear()
  }

  async #install(): Promise<void> {
    for (const subscription of this.#arriving) {
      try {
        await subscribe(this.#context.db, subscription)
      } catch (error) {
        this.#tell('subscribe', error, subscription.name)
        // What could not be asked is asked again at the next beat.
        if (error instanceof HermodError || !isConnectionError(error)) this.#arriving.delete(subscription)
        continue
      }
      if (!this.#arriving.delete(subscription) || this.#ended) continue
      this.#warned.delete(subscription.name)
      await this.#change(subscription.name, async () => this.#add(subscription))
    }
  }

  /** Stored subscriptions of our kinds that are not served as the database has them. */
  #missing(): string[] {
    const { registry, kinds, options } = this.#context
    const names: string[] = []
    for (const { name, kind, revision } of registry.rows.values()) {
      if (kind === null || !kinds.has(kind) || this.#changing.has(name)) continue
      if (this.#crews.get(name)?.subscription.revision === revision || this.#refused.get(name) === revision) continue
      if (options.subscriptions === undefined || options.subscriptions.includes(name)) names.push(name)
    }
    return names
  }

  /** One whose row is gone is served no more. */
  #lookForRow(name: string): void {
    if (this.#changing.has(name)) return
    if (this.#context.registry.rows.has(name)) this.#lookAtRevision(name)
    else if (this.#stored.has(name)) void this.#change(name, () => this.#retire(name))
    else if (!this.#warned.has(name))
      this.#warn('HMD_SUBSCRIPTION_UNKNOWN', name, `${name} was removed: it is not served`)
  }

  /** A newer revision than this code has. One that is stored follows by itself. */
  #lookAtRevision(name: string): void {
    const subscription = this.#crews.get(name)?.subscription
    if (subscription === undefined || this.#stored.has(name) || this.#warned.has(name)) return
    if (!this.#context.registry.state(subscription).outdated) return
    const says = `${name} has a newer revision than ${subscription.revision}: this worker no longer serves it`
    this.#warn('HMD_SUBSCRIPTION_OUTDATED', name, says)
  }

  async #serveStored(stored: Stored): Promise<void> {
    const { kinds, options } = this.#context
    // Somebody else who looked at the same moment was faster. A failover may bring an older revision back.
    const known = this.#crews.get(stored.name)?.subscription.revision ?? this.#refused.get(stored.name)
    if (known === stored.revision) return
    await this.#retire(stored.name)
    if (this.#ended) return
    try {
      const subscription = kinds.open(stored)
      this.#stored.add(stored.name)
      const [problem] = outlivingLease(options, [subscription])
      if (problem === undefined) return this.#add(subscription)
      await this.#close(subscription)
      throw new Error(`${problem.field} ${problem.says}`)
    } catch (error) {
      this.#refused.set(stored.name, stored.revision)
      const says = `${stored.name} is not served here: ${redacted(error, stored.settings)}`
      this.#warn('HMD_SINK_KIND_FAILED', stored.name, says)
    }
  }

  #add(subscription: ResolvedSubscription): void {
    const crew = this.#context.crew(subscription)
    this.#crews.set(subscription.name, crew)
    if (this.#running) crew.begin()
    this.#context.changed()
  }

  async #retire(name: string): Promise<void> {
    const crew = this.#crews.get(name)
    if (crew === undefined) return
    await crew.retire(this.#context.options.stopGraceMs)
    this.#crews.delete(name)
    this.#context.changed()
    if (this.#stored.delete(name)) await this.#close(crew.subscription)
  }

  async #close(subscription: ResolvedSubscription): Promise<void> {
    this.#stored.delete(subscription.name)
    await this.#context.kinds.close(subscription).catch((error) => this.#tell('close', error, subscription.name))
  }

  /** One change of a name at a time, in the order they came. */
  #change(name: string, work: () => Promise<void>): Promise<void> {
    const change = (this.#changing.get(name) ?? Promise.resolve()).then(work)
    const done = change
      .catch((error) => this.#tell('subscribe', error, name))
      .finally(() => {
        if (this.#changing.get(name) === done) this.#changing.delete(name)
      })
    this.#changing.set(name, done)
    return done
  }

  #warn(code: HermodErrorCode, subscription: string, message: string): void {
    this.#warned.add(subscription)
    notify(this.#context.listener, 'warning', { code, message, subscription })
  }

  #tell(during: string, error: unknown, subscription: string): void {
    notify(this.#context.listener, 'error', { during, error, subscription })
  }
}
