/**
 * The kinds of sinks this process has. A subscription made at run time names one; its sink is made from the stored
 * settings, shared by the workers of this process, and closed when the last of them has let go of it.
 */
import { callable, checkOptions, flag, optional, text } from './check-options.ts'
import { HermodError } from './errors.ts'
import { clip } from './foreign-text.ts'
import type { Sink, SinkFunction } from './sinks/sink.ts'
import {
  kindNameProblem,
  type ResolvedSubscription,
  type SubscriptionOptions,
  subscriptionOptions,
} from './subscription-options.ts'

export type Settings = Readonly<Record<string, unknown>>
export type MakeSink = (settings: Settings) => Sink | SinkFunction

export interface SinkKindOptions {
  /** Throws, or returns a sentence, when a sink cannot be made of these settings; asked before they are stored. */
  readonly check?: (settings: Settings) => string | undefined
  /** Sinks of this kind keep a row for each event: `capabilities.ledger`. */
  readonly ledger?: boolean
}

/** A definition as it is stored. */
export interface StoredDefinition {
  readonly name: string
  readonly revision: number
  readonly kind: string
  readonly settings: Settings
  readonly ledger: boolean
  /** The options of the subscription. */
  readonly definition: Readonly<Record<string, unknown>>
}

interface Kind extends SinkKindOptions {
  readonly make: MakeSink
}

interface Opened {
  readonly subscription: ResolvedSubscription
  users: number
}

const kindSpec = { check: optional(callable<NonNullable<SinkKindOptions['check']>>()), ledger: flag(false) }
const saysCharsMax = 500

export class SinkKinds {
  readonly #kinds = new Map<string, Kind>()
  readonly #opened = new Map<string, Opened>()

  get names(): string[] {
    return [...this.#kinds.keys()]
  }

  has(kind: string): boolean {
    return this.#kinds.has(kind)
  }

  register(kind: string, make: MakeSink, options: SinkKindOptions): void {
    const spec = { kind: text(kindNameProblem), make: callable<MakeSink>(), ...kindSpec }
    const { kind: name, ...rest } = checkOptions('sinkKind', { kind, make, ...options }, spec)
    if (this.#kinds.has(name)) {
      throw new HermodError('HMD_SUBSCRIPTION_CONFLICT', `the kind ${name} is registered twice`, {
        field: 'kind',
        fix: 'Register each kind of sink once in a process.',
      })
    }
    this.#kinds.set(name, rest as Kind)
  }

  isLedger(kind: string): boolean {
    return this.#kinds.get(kind)?.ledger ?? false
  }

  /** Refuses settings that the kind cannot use. A kind that is not registered here is checked where it is. */
  check(kind: string, settings: Settings): void {
    const problem = this.#problem(this.#kinds.get(kind), settings)
    if (problem === undefined) return
    throw new HermodError('HMD_OPTION_INVALID', `settings of kind ${kind}: ${redacted(problem, settings)}`, {
      field: 'settings',
      fix: 'Correct the settings; nothing was stored.',
    })
  }

  #problem(kind: Kind | undefined, settings: Settings): string | undefined {
    try {
      return kind?.check?.(settings)
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  /** The subscription with its sink; made once for all workers of this process. Throws what the kind says. */
  open(stored: StoredDefinition): ResolvedSubscription {
    const key = keyOf(stored)
    const opened = this.#opened.get(key) ?? { subscription: this.#make(stored), users: 0 }
    this.#opened.set(key, opened)
    opened.users++
    return opened.subscription
  }

  #make({ name, revision, kind, settings, ledger, definition }: StoredDefinition): ResolvedSubscription {
    const sink = this.#kinds.get(kind)?.make(settings) as Sink
    const { kind: _, ledger: __, ...options } = definition
    const subscription = subscriptionOptions(name, { ...options, revision, sink } as unknown as SubscriptionOptions)
    if (subscription.ledger === ledger) return subscription
    const says = ledger ? 'is stored as a ledger, its sink is none' : 'has a ledger sink, and is not stored as one'
    throw new HermodError('HMD_SUBSCRIPTION_CONFLICT', `${name} ${says}`, {
      fix: 'Say ledger where the kind is registered, and define the subscription under another name.',
    })
  }

  /** One worker has let go of it. */
  async close({ name, revision }: { readonly name: string; readonly revision: number }): Promise<void> {
    const key = keyOf({ name, revision })
    const opened = this.#opened.get(key)
    if (opened === undefined || --opened.users > 0) return
    this.#opened.delete(key)
    await opened.subscription.sink.close?.()
  }
}

function keyOf({ name, revision }: { readonly name: string; readonly revision: number }): string {
  return `${name} ${revision}`
}

/** What a kind says about settings may quote them, and there may be secrets in them. */
export function redacted(says: unknown, settings: unknown): string {
  let text = says instanceof Error ? says.message : String(says)
  for (const secret of textsIn(settings)) text = text.replaceAll(secret, '…')
  return clip(text, saysCharsMax)
}

/** Short texts (`on`, `eu`) are no secrets, and replacing them would make nonsense of a sentence. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return value.length < 4 ? [] : [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value)
    .flatMap(textsIn)
    .sort((a, b) => b.length - a.length)
}
