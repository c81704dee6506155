/**
 * Subscriptions made at run time: a kind of sink, JSON settings and a definition, stored in the database. Every worker
 * that has the kind serves them within two seconds of COMMIT, also after changes and removals.
 */
import { asTx } from './clients/client.ts'
import { type Database, select } from './database.ts'
import { type RemoveOptions, type RemoveResult, remove } from './desk/remove.ts'
import { fromSqlState, HermodError } from './errors.ts'
import { define, definitionPage, definitions, type Stored } from './flow/define.ts'
import type { Settings, SinkKinds } from './sink-kinds.ts'
import { type Definition, definitionOptions } from './subscription-options.ts'

export interface DefineOptions {
  /** A transaction of yours: the subscription comes, or changes, with its COMMIT. */
  readonly tx?: unknown
}

export interface ChangeOptions extends DefineOptions {
  /** Refuse if somebody has changed it since this revision. */
  readonly revision?: number
}

/** Without settings: there may be secrets in them. */
export interface DefinedSubscription {
  readonly name: string
  readonly kind: string
  readonly revision: number
  readonly mode: 'live' | 'dry-run' | 'paused'
  readonly definition: Omit<Definition, 'settings' | 'kind'>
  readonly createdAt: Date
}

export interface ListOptions {
  readonly kind?: string
  /** Only names after this one: the last of the page before. */
  readonly after?: string
  /** 1 to 1,000; 100 when left out. */
  readonly limit?: number
}

/** Two changes at the same moment: the second one reads again. */
const changesMax = 5

export class Subscriptions {
  readonly #db: Database
  readonly #kinds: SinkKinds

  constructor(db: Database, kinds: SinkKinds) {
    this.#db = db
    this.#kinds = kinds
  }

  /** A new one; its revision. */
  create(name: string, definition: Definition, { tx }: DefineOptions = {}): Promise<number> {
    return this.#store(name, definition, null, tx)
  }

  /** The fields given replace the stored ones; the new revision. `from` and `mode` count at creation only. */
  async change(name: string, fields: Partial<Definition>, { tx, revision }: ChangeOptions = {}): Promise<number> {
    for (let left = changesMax; ; left--) {
      const stored = await this.#stored(name)
      const definition = { ...stored.definition, kind: stored.kind, settings: stored.settings, ...fields } as Definition
      try {
        return await this.#store(name, definition, revision ?? stored.revision, tx)
      } catch (error) {
        const raced = error instanceof HermodError && error.code === 'HMD_SUBSCRIPTION_CONFLICT'
        const again = raced && left > 1 && revision === undefined && tx === undefined
        if (!again || (await this.#stored(name)).revision === stored.revision) throw error
      }
    }
  }

  /** For good, with lanes, cursors and deliveries; undelivered events need a confirmation. */
  remove(name: string, by: RemoveOptions): Promise<RemoveResult> {
    return remove(this.#db, name, by)
  }

  /** With its settings; undefined: there is none of that name, or it is declared in code. */
  async get(name: string): Promise<(DefinedSubscription & { readonly settings: Settings }) | undefined> {
    const [stored] = await definitions(this.#db, [name])
    return stored && { ...defined(stored), settings: stored.settings }
  }

  /** By name. */
  async list({ kind, after, limit = 100 }: ListOptions = {}): Promise<DefinedSubscription[]> {
    const rows = await definitionPage(this.#db, { kind, after, limit: Math.max(1, Math.min(limit, 1_000)) })
    return rows.map(defined)
  }

  async #store(name: string, given: Definition, expected: number | null, tx: unknown): Promise<number> {
    const checked = definitionOptions(name, given)
    this.#kinds.check(checked.kind, checked.settings)
    const ledger = checked.ledger ?? this.#kinds.isLedger(checked.kind)
    const client = tx === undefined ? undefined : asTx(tx)
    const run = async (text: string, values: readonly (string | null)[]) =>
      client === undefined ? select(this.#db, text, values) : client.query(text, values)
    try {
      return await define(this.#db, run, { ...checked, ledger }, expected)
    } catch (error) {
      throw fromSqlState(error)
    }
  }

  async #stored(name: string): Promise<Stored> {
    const [stored] = await definitions(this.#db, [name])
    if (stored !== undefined) return stored
    throw new HermodError('HMD_SUBSCRIPTION_UNKNOWN', `there is no subscription ${name} that was made at run time`)
  }
}

function defined({ name, kind, revision, mode, definition, createdAt }: Stored): DefinedSubscription {
  const { kind: _, ...rest } = definition
  return { name, kind, revision, mode, createdAt, definition: rest as unknown as DefinedSubscription['definition'] }
}
