/**
 * An index that was declared: its engine, what its fields are for, where its rows come from, and the
 * subscription that keeps it up to date. Rebuild, verify and backfill work on nothing else.
 */
import {
  checkOptions,
  flag,
  group,
  having,
  integer,
  optional,
  type Problem,
  refuse,
  rule,
  text,
  withDefault,
} from '../check-options.ts'
import type { Database } from '../database.ts'
import type { OutboxEvent } from '../event.ts'
import { aggregateTypeProblem, eventTypeProblem } from '../event-names.ts'
import { checkDefinition } from '../sinks/search/check-definition.ts'
import type { IndexDefinition } from '../sinks/search/definition.ts'
import type { EnsuredIndex, SearchEngine } from '../sinks/search/engine.ts'
import { type SearchSink, type SearchSinkOptions, searchSink } from '../sinks/search/sink.ts'
import { type Load, type ResolvedSubscription, subscriptionNameProblem } from '../subscription-options.ts'
import { type IndexSource, loadFrom } from './source.ts'

/** At an interval, or once a day at this time (UTC). */
export type Schedule =
  | { readonly everyMs: number; readonly dailyAt?: undefined }
  | { readonly dailyAt: string; readonly everyMs?: undefined }

export type VerifySchedule = Schedule & {
  readonly repair?: boolean
  readonly sample?: number
  readonly fast?: boolean
}

export interface IndexOptions {
  readonly engine: SearchEngine
  readonly definition: IndexDefinition
  /** tableSource(), querySource(), or your own. */
  readonly source: IndexSource
  /** The subscription whose sink writes this index. */
  readonly subscription: string
  /**
   * The event that makes the subscription read a row again. `document.refreshed` of aggregates
   * `document` when its types are `document.*`; must be given otherwise.
   */
  readonly refresh?: { readonly type: string; readonly aggregate: string }
  /** How long the former generation is kept after a rebuild; an hour when left out. */
  readonly keepMs?: number
  readonly schedule?: { readonly rebuild?: Schedule; readonly verify?: VerifySchedule }
}

const TIME = /^([01]\d|2[0-3]):[0-5]\d$/
const when = {
  everyMs: optional(integer({ min: 1_000, max: 366 * 86_400_000 })),
  dailyAt: optional(text((value) => (TIME.test(String(value)) ? undefined : 'must be a time (UTC) like 03:30'))),
}
const verifyWhen = {
  ...when,
  repair: flag(false),
  sample: optional(integer({ min: 1, max: 1_000_000 })),
  fast: flag(false),
}

const spec = {
  engine: having<SearchEngine>(
    ['upsert', 'scan', 'createGeneration'],
    'must be a search engine, like postgresSearch()',
  ),
  definition: rule<IndexDefinition>((value) => value as IndexDefinition),
  source: having<IndexSource>(['page', 'find', 'count'], 'must be a source: tableSource() or querySource()'),
  subscription: text(subscriptionNameProblem),
  refresh: optional(group({ type: text(eventTypeProblem), aggregate: text(aggregateTypeProblem) })),
  keepMs: integer({ min: 0, max: 366 * 86_400_000, default: 3_600_000 }),
  schedule: withDefault(group({ rebuild: optional(group(when)), verify: optional(group(verifyWhen)) }), {}),
}

export class DeclaredIndex {
  readonly name: string
  readonly engine: SearchEngine
  readonly definition: IndexDefinition
  readonly source: IndexSource
  readonly subscription: string
  readonly keepMs: number
  readonly schedule: { readonly rebuild?: Schedule; readonly verify?: VerifySchedule }
  /** The `load` of the subscription: the current rows. Rows that are gone are deleted from the index. */
  readonly load: Load
  readonly #refresh: IndexOptions['refresh']

  constructor(name: string, given: IndexOptions, db: Database) {
    const options = checkOptions(`index(${JSON.stringify(name)})`, given, spec)
    checkDefinition(name, options.definition)
    refuse(`index(${JSON.stringify(name)})`, scheduleProblems(options.schedule))
    this.name = name
    this.engine = options.engine
    this.definition = options.definition
    this.source = options.source
    this.subscription = options.subscription
    this.keepMs = options.keepMs
    this.schedule = options.schedule as DeclaredIndex['schedule']
    this.#refresh = options.refresh
    this.load = (events: readonly OutboxEvent[]) => {
      const ids = events.map(({ aggregateId }) => aggregateId)
      return loadFrom(this.source, db, ids)
    }
  }

  /** Creates what is missing, as the engine's ensureIndex does. */
  ensure(): Promise<EnsuredIndex> {
    return this.engine.ensureIndex(this.name, this.definition)
  }

  /** The sink of the subscription. */
  sink(options: Omit<SearchSinkOptions, 'index'> = {}): SearchSink {
    return searchSink(this.engine, { index: this.name, ...options })
  }

  /** The event that makes the subscription read a row again, or why there is none. */
  refreshOf(
    subscription: Pick<ResolvedSubscription, 'load' | 'types'> | undefined,
  ): { readonly type: string; readonly aggregate: string } | string {
    if (subscription === undefined) {
      return `the subscription ${this.subscription} is not declared in this process`
    }
    if (subscription.load === undefined) {
      return `the subscription ${this.subscription} has no load(), so nothing could read a row again: give it load: index.load (with loads: 'references' where events carry their own state)`
    }
    if (this.#refresh !== undefined) return this.#refresh
    const nouns = new Set(subscription.types.map((type) => /^([a-z][a-z0-9_]*)\.\*$/.exec(type)?.[1]))
    const [noun] = nouns
    if (nouns.size === 1 && noun !== undefined) {
      return { type: `${noun}.refreshed`, aggregate: noun }
    }
    return `it is not clear which event makes ${this.subscription} read a row again: give the index refresh: { type, aggregate }`
  }
}

function scheduleProblems(schedule: object): Problem[] {
  return Object.entries(schedule).flatMap(([name, given]) => {
    const { everyMs, dailyAt } = (given ?? {}) as { everyMs?: number; dailyAt?: string }
    if (given === undefined || (everyMs === undefined) !== (dailyAt === undefined)) return []
    return [{ field: `schedule.${name}`, says: 'must have either everyMs or dailyAt' }]
  })
}
