/**
 * watch: captures a table by triggers, so that rows written by any program become events in the
 * same transaction. Watching twice with the same options changes nothing.
 */
import { checkOptions, group, list, oneOf, optional, text, withDefault } from '../check-options.ts'
import { type Database, select } from '../database.ts'
import { HermodError } from '../errors.ts'
import { arrayLiteral } from './emit.ts'

const WATCH = 'select outbox.watch($1, $2::jsonb, $3::text::text[])::text as changed'
const UNWATCH = 'select outbox.unwatch($1)::text as changed'

export interface WatchOptions {
  /** Aggregate type, and the noun of the events: `document`. */
  readonly type: string
  /** Columns of the key; the primary key when left out. */
  readonly key?: readonly string[]
  /** Only changes of these are told, and only these (and the key) are in the payload. */
  readonly columns?: readonly string[]
  /** `document.created`, `.updated`, `.deleted`, `.refreshed` when left out. */
  readonly events?: {
    readonly insert?: string
    readonly update?: string
    readonly delete?: string
    readonly refresh?: string
  }
  /** The row itself, or nothing: the subscription's load() reads it at delivery. */
  readonly payload?: 'row' | 'reference'
  /** TRUNCATE fails, or emits one `refreshed` event per row. */
  readonly truncate?: 'refuse' | 'refresh'
}

const name = text((value) => (value === '' ? 'must not be empty' : undefined))

const watchSpec = {
  type: name,
  key: optional(list(name, { min: 1, max: 32 })),
  columns: optional(list(name, { min: 1 })),
  events: withDefault(
    group({
      insert: optional(name),
      update: optional(name),
      delete: optional(name),
      refresh: optional(name),
    }),
    {},
  ),
  payload: oneOf(['row', 'reference'], 'row'),
  truncate: oneOf(['refuse', 'refresh'], 'refuse'),
}

/** True when something changed. `written`: tables that sinks of this process write. */
export async function watch(
  db: Database,
  table: string,
  given: WatchOptions,
  written: readonly string[] = [],
): Promise<boolean> {
  const options = checkOptions(`watch(${JSON.stringify(table)})`, given, watchSpec)
  return change(db, WATCH, [table, JSON.stringify(options), arrayLiteral(written)])
}

/** True when it was watched. */
export async function unwatch(db: Database, table: string): Promise<boolean> {
  return change(db, UNWATCH, [table])
}

async function change(db: Database, sql: string, values: readonly string[]): Promise<boolean> {
  try {
    const [row] = await select(db, sql, values)
    return row?.changed === 'true'
  } catch (error) {
    if ((error as { code?: unknown }).code !== '55P03') throw error
    const says = `${values[0]} is locked by another transaction for more than 10 s`
    throw new HermodError('HMD_LOCK_TIMEOUT', says, { cause: error })
  }
}
