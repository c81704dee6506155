/** What every claim loop of one subscription in one worker shares. */
import type { Database } from '../database.ts'
import type { EventDefinitions } from '../event-definitions.ts'
import type { Kinds } from '../flow/kinds.ts'
import type { ResolvedSubscription } from '../options.ts'
import type { Outcome } from '../sinks/outcome.ts'
import type { Listener } from '../telemetry.ts'
import type { Rate } from './rate.ts'
import type { Turnstile } from './turnstile.ts'

/** The subscription's row, as of the last heartbeat. */
export interface SubscriptionState {
  readonly mode: 'live' | 'dry-run' | 'paused'
  readonly outdated: boolean
  readonly held: boolean
  /** On the monotonic clock: when somebody may probe. */
  readonly probeAtMs: number
  /** Lanes of the subscription, and workers that serve it. */
  readonly lanes: number
  readonly workers: number
  /** The replay that may send now. */
  readonly replay?: { readonly journey: bigint; readonly plan: object } | undefined
}

/** A wait for the end of a parked call. */
export interface Waiting {
  /** Undefined: the wait was given up, or the worker stops. */
  readonly ended: Promise<Outcome | undefined>
  forget(): void
}

/** Asks for the outcomes of tasks (poller.ts). */
export interface Tasks {
  wait(handle: string): Waiting
}

export interface Station {
  readonly db: Database
  readonly subscription: ResolvedSubscription
  readonly owner: string
  readonly workerName: string
  readonly leaseMs: number
  readonly pollMs: number
  readonly busyPollMs: number
  readonly listener: Listener
  readonly definitions: EventDefinitions | undefined
  readonly kinds: Kinds
  readonly turnstile: Turnstile
  readonly rate: Rate | undefined
  readonly random: () => number
  /** Set if the sink may park its calls. */
  readonly poller: Tasks | undefined
  /** Aborted when the grace period of a stop is over. */
  readonly abort: AbortSignal
  listens(type: string, aggregateType: string): boolean
  state(): SubscriptionState
  /** Reads the subscription's row again. */
  refresh(): Promise<void>
  /** Events of this subscription delivered so far in this worker. */
  passes: number
}
