/**
 * Looks for work on behalf of all idle crews of a worker, so that none of them has a poll of its own: it knows which
 * crews listen to which kinds of events, and asks once per poll for what no news announced: due retries, lanes that
 * somebody left behind, replays, a backlog at the start.
 */
import { type Database, isConnectionError } from '../database.ts'
import { epochOf, type Kinds } from '../flow/kinds.ts'
import { type Looked, look, passIdle } from '../flow/look.ts'
import type { News } from '../flow/sequence.ts'
import { type Listener, notify } from '../telemetry.ts'
import type { Crew } from './crew.ts'
import type { SubscriptionState } from './station.ts'
import { Wake } from './wake.ts'

export interface LookoutContext {
  readonly db: Database
  readonly kinds: Kinds
  readonly listener: Listener
  readonly pollMs: number
  readonly busyPollMs: number
  crews(): Iterable<Crew>
  crew(name: string): Crew | undefined
  state(crew: Crew): SubscriptionState
  /** The database has failed over. */
  newEpoch(): void
}

/** Cursors of idle subscriptions move this often; one worker does it for all. */
const passEveryMs = 60_000
/** So many crews may look for themselves where it is not known whom something concerns. */
const few = 32
const errorMs = 1_000
const brokenConnectionMs = 200

export class Lookout {
  readonly #context: LookoutContext
  readonly #wake = new Wake()
  /** Who listens to a kind, by its code; forgotten with the epoch, and when crews come or go. */
  readonly #listeners = new Map<number, readonly Crew[]>()
  /** Every kind numbered up to here was told to whoever listens; undefined: nobody knows. */
  #known: bigint | undefined
  #epoch: bigint | undefined
  /** News came from another epoch than the one known here. */
  #foreign = false
  #passAtMs: number | undefined
  #stopped = false

  constructor(context: LookoutContext) {
    this.#context = context
  }

  /** Crews came or went. */
  changed(): void {
    this.#listeners.clear()
    this.#wake.wake()
  }

  stop(): void {
    this.#stopped = true
    this.#wake.wake()
  }

  /** Until stopped. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      const seen = this.#wake.count
      const startedMs = performance.now()
      const pauseMs = await this.#lookSafely()
      await this.#wake.wait(pauseMs, seen)
      // News that say nothing may come with every step.
      const tooSoonMs = this.#context.busyPollMs - (performance.now() - startedMs)
      if (tooSoonMs > 0 && !this.#stopped) await new Wake().wait(tooSoonMs)
    }
  }

  /** Something was numbered; undefined: what it is has to be asked. */
  tell(news: News | undefined): void {
    const crews = news && this.#concerned(news)
    if (news === undefined || crews === undefined) {
      const all = [...this.#context.crews()]
      for (const crew of all) crew.hear(undefined)
      // Few look for themselves at once; for many it is asked first whom it concerns.
      if (all.length <= few) for (const crew of all) crew.wake()
      this.#wake.wake()
      return
    }
    for (const crew of crews) crew.hear(news)
    if (this.#known !== undefined && news.from <= this.#known && news.to > this.#known) this.#known = news.to
  }

  /** Undefined: of another epoch, or a kind that was never met. */
  #concerned({ kinds, to }: News): Iterable<Crew> | undefined {
    if (epochOf(to) !== this.#epoch) {
      this.#foreign = true
      return undefined
    }
    const concerned = new Set<Crew>()
    for (const code of kinds) {
      const crews = this.#listeners.get(code) ?? this.#learn(code)
      if (crews === undefined) return undefined
      for (const crew of crews) concerned.add(crew)
    }
    return concerned
  }

  #learn(code: number): readonly Crew[] | undefined {
    const kind = this.#context.kinds.names.get(String(code))
    if (kind === undefined) return undefined
    const crews = [...this.#context.crews()].filter((crew) => crew.listensTo(...kind))
    this.#listeners.set(code, crews)
    return crews
  }

  /** How long to wait for the next look. */
  async #lookSafely(): Promise<number> {
    try {
      return (await this.#look()) ? this.#context.pollMs : 0
    } catch (error) {
      this.#known = undefined
      notify(this.#context.listener, 'error', { during: 'look', error })
      return isConnectionError(error) ? brokenConnectionMs : errorMs
    }
  }

  /** True: everything is known; false: there is more to read. */
  async #look(): Promise<boolean> {
    const resting = [...this.#context.crews()].filter((crew) => crew.resting)
    if (resting.length === 0 && !this.#foreign) {
      // Nobody to wake. What is numbered meanwhile is asked when somebody rests.
      this.#known = undefined
      return true
    }
    await this.#pass(resting.length)
    const known = this.#known
    if (known === undefined) for (const crew of resting) crew.forget()
    const found = await this.#ask(
      known,
      resting.filter((crew) => crew.heard === undefined || crew.heard > crew.clear),
    )
    await this.#announce(found, known)
    for (const crew of this.#callable(found.waiting)) crew.wake()
    return found.upto >= found.head
  }

  async #ask(known: bigint | undefined, suspects: readonly Crew[]): Promise<Looked> {
    const asked = suspects.map((crew) => ({ crew, name: crew.subscription.name, heard: crew.heard }))
    const found = await look(this.#context.db, known, asked)
    // Somebody has announced what is not there.
    if (known !== undefined && found.head < known) this.#known = undefined
    const clear = new Set(found.clear)
    for (const { crew, name, heard = found.head } of asked) {
      if (crew.heard === undefined) crew.asked(heard)
      if (clear.has(name) && heard > crew.clear) crew.clear = heard
    }
    return found
  }

  /** Kinds that no news have told. */
  async #announce({ kinds, upto }: Looked, known: bigint | undefined): Promise<void> {
    if (epochOf(upto) !== this.#epoch) this.#listeners.clear()
    this.#foreign = false
    if (this.#epoch !== undefined && epochOf(upto) !== this.#epoch) this.#context.newEpoch()
    this.#epoch = epochOf(upto)
    if (known === undefined || kinds.length > 0) {
      await this.#context.kinds.namesFor(this.#context.db, upto, Math.max(0, ...kinds))
      const news = { from: known ?? upto, to: upto, kinds, lanes: [] }
      for (const crew of this.#concerned(news) ?? this.#context.crews()) crew.heardOf(upto)
    }
    if (this.#known === undefined || upto > this.#known) this.#known = upto
  }

  /** Those of these names that are served here, and may be. */
  #callable(names: readonly string[]): Crew[] {
    return names.flatMap((name) => {
      const crew = this.#context.crew(name)
      if (crew === undefined) return []
      const { mode, outdated } = this.#context.state(crew)
      return mode === 'paused' || outdated ? [] : [crew]
    })
  }

  /** Who has something to do: for runOnce. */
  async waiting(): Promise<Crew[]> {
    const crews = [...this.#context.crews()]
    await this.#pass(crews.length)
    const found = await look(
      this.#context.db,
      undefined,
      crews.map(({ subscription: { name } }) => ({ name, heard: undefined })),
    )
    const called = new Set(this.#callable(found.waiting))
    return crews.filter((crew) => called.has(crew) || crew.present.length > 0)
  }

  /** Cursors of idle lanes, here and elsewhere, move past what nobody there listens to. */
  async #pass(resting: number): Promise<void> {
    const now = performance.now()
    const first = this.#passAtMs === undefined
    // At the start only where it saves many of them from looking for themselves.
    this.#passAtMs ??= resting > few ? now : now + passEveryMs
    if (now < this.#passAtMs) return
    this.#passAtMs = now + passEveryMs
    // Whoever waits for work does not wait for this: it is done at the next time, if it fails now.
    await passIdle(this.#context.db, first ? 0 : passEveryMs * 0.9).catch((error) =>
      notify(this.#context.listener, 'error', { during: 'look', error }),
    )
  }
}
