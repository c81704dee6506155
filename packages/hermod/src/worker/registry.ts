/**
 * One heartbeat row per worker. The same round trip brings what the worker must know: the state of
 * subscriptions, and which other workers share them. A beat brings only what changed since the last one.
 */
import { hostname } from 'node:os'
import { type Database, select } from '../database.ts'
import { version } from '../version.ts'
import type { SubscriptionState } from './station.ts'

const BEAT = `select seen, unlisted::text, others::text, changed::text, to_json(removed)::text as removed
  from outbox.beat($1, $2, $3, $4, $5, $6::text[], $7::text[], $8, $9, $10::pg_snapshot, $11::text[])`

export const heartbeatMs = 1_000
/** A worker without a heartbeat for this long gets no share of the lanes. */
const aliveMs = 2_500
/** This often everything is read: whatever a failover or a restore has taken back is noticed then. */
const wholeEveryMs = 30_000

/** What a worker serves, and which kinds of sinks it has. */
export interface Serving {
  readonly names: readonly string[]
  readonly kinds: readonly string[]
}

/** A subscription's row, as far as workers must know it. */
export interface SubscriptionRow {
  readonly name: string
  readonly revision: number
  /** Null: declared in code. */
  readonly kind: string | null
  readonly mode: SubscriptionState['mode']
  readonly held: boolean
  readonly probeAtMs: number
  readonly lanes: number
  readonly replay: SubscriptionState['replay']
}

interface OtherWorker {
  readonly draining: boolean
  readonly names: ReadonlySet<string>
}

export class Registry {
  readonly id: string
  readonly name: string
  readonly #db: Database
  readonly #serving: () => Serving
  readonly #rows = new Map<string, SubscriptionRow>()
  #others: ReadonlyMap<string, OtherWorker> = new Map()
  /** The snapshot of the last beat; undefined: everything has to be read. */
  #since: string | undefined
  #wholeAtMs = 0
  /** The list as the database has it. */
  #listed: string | undefined
  #servedAtMs = 0
  #draining = false
  #beating: Promise<void> | undefined

  constructor(db: Database, id: string, name: string, serving: () => Serving) {
    this.#db = db
    this.id = id
    this.name = name
    this.#serving = serving
  }

  get others(): boolean {
    return this.#others.size > 0
  }

  /** All there are, served here or not. */
  get rows(): ReadonlyMap<string, SubscriptionRow> {
    return this.#rows
  }

  /** Of a subscription as this worker has it; one without a row is not served. */
  state({ name, revision }: { readonly name: string; readonly revision: number }): SubscriptionState {
    const row = this.#rows.get(name)
    if (row === undefined) return UNKNOWN
    const { mode, held, probeAtMs, lanes, replay } = row
    return { mode, held, probeAtMs, lanes, replay, outdated: row.revision > revision, workers: this.#workersFor(name) }
  }

  #workersFor(name: string): number {
    let count = 1
    for (const { draining, names } of this.#others.values()) if (!draining && names.has(name)) count++
    return count
  }

  drain(): void {
    this.#draining = true
  }

  /** A call during a heartbeat under way shares its result. */
  beat(): Promise<void> {
    this.#beating ??= this.#beat().finally(() => {
      this.#beating = undefined
    })
    return this.#beating
  }

  /** A heartbeat that reads everything. */
  async beatAnew(): Promise<void> {
    await this.#beating?.catch(() => {})
    this.#since = undefined
    await this.beat()
  }

  async #beat(): Promise<void> {
    const { names, kinds } = this.#serving()
    const list = JSON.stringify([names, kinds])
    const askedMs = performance.now()
    if (askedMs > this.#wholeAtMs + wholeEveryMs) this.#since = undefined
    const since = this.#since
    // After an error nothing is assumed.
    this.#since = undefined
    const [row] = await select(this.#db, BEAT, [
      ...[this.id, this.name, hostname(), process.pid, version],
      ...[list === this.#listed ? null : names, kinds, this.#draining, aliveMs],
      ...[since ?? null, this.#replaying()],
    ])
    this.#listed = row?.unlisted === 'true' ? undefined : list
    if (since === undefined) this.#wholeAtMs = askedMs
    this.#learn(row?.changed, row?.removed, askedMs, since === undefined)
    this.#since = this.#meet(row?.others) ? (row?.seen ?? undefined) : undefined
    await this.#served(askedMs)
  }

  /** A replay is no part of the row: whoever thinks that one runs asks again. */
  #replaying(): string[] {
    return [...this.#rows.values()].filter(({ replay }) => replay !== undefined).map(({ name }) => name)
  }

  #learn(changed: Text, removed: Text, askedMs: number, whole: boolean): void {
    const rows = (JSON.parse(changed ?? '[]') as ChangedRow[]).map((row) => subscriptionRow(row, askedMs))
    if (whole) {
      const there = new Set(rows.map(({ name }) => name))
      for (const name of this.#rows.keys()) if (!there.has(name)) this.#rows.delete(name)
    }
    for (const name of JSON.parse(removed ?? '[]') as string[]) this.#rows.delete(name)
    for (const row of rows) this.#rows.set(row.name, row)
  }

  /** False: somebody is new, and the answer did not say what it serves. */
  #meet(text: Text): boolean {
    const others = JSON.parse(text ?? '[]') as OtherRow[]
    const known = this.#others
    const complete = others.every(({ id, subscriptions }) => subscriptions !== null || known.has(id))
    this.#others = new Map(
      others.map(({ id, draining, subscriptions }) => {
        const names = subscriptions === null ? (known.get(id)?.names ?? new Set<string>()) : new Set(subscriptions)
        return [id, { draining, names }]
      }),
    )
    return complete
  }

  async #served(nowMs: number): Promise<void> {
    if (this.#listed === undefined || nowMs < this.#servedAtMs + wholeEveryMs) return
    await select(this.#db, 'select outbox.served($1)', [this.id])
    this.#servedAtMs = nowMs
  }

  async leave(): Promise<void> {
    await this.#beating?.catch(() => {})
    await select(this.#db, 'select outbox.leave($1)', [this.id])
  }
}

type Text = string | null | undefined

const UNKNOWN: SubscriptionState = {
  mode: 'paused',
  outdated: false,
  held: false,
  probeAtMs: 0,
  lanes: 1,
  workers: 1,
}

interface OtherRow {
  readonly id: string
  readonly draining: boolean
  /** Null: unchanged. */
  readonly subscriptions: readonly string[] | null
}

/** As outbox.beat writes it. */
interface ChangedRow {
  readonly name: string
  readonly revision: number
  readonly kind: string | null
  readonly mode: SubscriptionState['mode']
  readonly held: boolean
  readonly probe_ms: number | null
  readonly lanes: number
  readonly replay: { readonly journey: string; readonly plan: object } | null
}

function subscriptionRow(row: ChangedRow, askedMs: number): SubscriptionRow {
  const { name, revision, kind, mode, held, lanes, replay } = row
  const probeAtMs = askedMs + (row.probe_ms ?? 0)
  const running = replay === null ? undefined : { journey: BigInt(replay.journey), plan: replay.plan }
  return { name, revision, kind, mode, held, probeAtMs, lanes, replay: running }
}
