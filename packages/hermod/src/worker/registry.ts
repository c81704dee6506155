/**
 * One heartbeat row per worker. The same round trip returns what the worker must know about its
 * subscriptions: mode, breaker, revision, and how many workers share the lanes.
 */
import { hostname } from 'node:os'
import { type Database, select } from '../database.ts'
import type { ResolvedSubscription } from '../options.ts'
import { version } from '../version.ts'
import type { SubscriptionState } from './station.ts'

const HEARTBEAT = `select name, revision::text, mode, held_cause, probe_ms::text, lanes::text, workers::text, others::text, replay::text
  from outbox.heartbeat($1, $2, $3, $4, $5, $6::text[], $7, $8)`

export const heartbeatMs = 1_000
/** A worker without a heartbeat for this long gets no share of the lanes. */
const aliveMs = 2_500

const UNKNOWN: SubscriptionState = {
  mode: 'paused',
  outdated: false,
  held: false,
  probeAtMs: 0,
  lanes: 1,
  workers: 1,
}

export class Registry {
  readonly id: string
  readonly name: string
  readonly #db: Database
  readonly #subscriptions: readonly ResolvedSubscription[]
  readonly #states = new Map<string, SubscriptionState>()
  #others = false
  #draining = false
  #beating: Promise<void> | undefined

  constructor(db: Database, id: string, name: string, subscriptions: readonly ResolvedSubscription[]) {
    this.#db = db
    this.id = id
    this.name = name
    this.#subscriptions = subscriptions
  }

  get others(): boolean {
    return this.#others
  }

  state(subscription: string): SubscriptionState {
    return this.#states.get(subscription) ?? UNKNOWN
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

  async #beat(): Promise<void> {
    const names = this.#subscriptions.map(({ name }) => name)
    const askedMs = performance.now()
    const rows = await select(this.#db, HEARTBEAT, [
      ...[this.id, this.name, hostname(), process.pid, version],
      ...[names, this.#draining, aliveMs],
    ])
    for (const row of rows) {
      const ours = this.#subscriptions.find(({ name }) => name === row.name)
      this.#states.set(row.name as string, {
        mode: row.mode as SubscriptionState['mode'],
        outdated: Number(row.revision) > (ours?.revision ?? 0),
        held: row.held_cause !== null,
        probeAtMs: askedMs + Number(row.probe_ms ?? 0),
        lanes: Number(row.lanes),
        workers: Math.max(1, Number(row.workers)),
        replay: replayOf(row.replay),
      })
    }
    this.#others = rows.some((row) => row.others === 'true')
  }

  async leave(): Promise<void> {
    await this.#beating?.catch(() => {})
    await select(this.#db, 'select outbox.leave($1)', [this.id])
  }
}

function replayOf(text: string | null | undefined): SubscriptionState['replay'] {
  if (text === null || text === undefined) return undefined
  const { journey, plan } = JSON.parse(text) as { journey: string; plan: object }
  return { journey: BigInt(journey), plan }
}
