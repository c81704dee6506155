/**
 * Drizzle: the tx of `db.transaction`, on any of its PostgreSQL drivers. Only a transaction has
 * `rollback`; on the driver `pg` its connection also tells whether that transaction has ended.
 */

import { hasMethods } from './duck.ts'
import { pgClient } from './pg.ts'
import type { ClientAdapter } from './tx.ts'

interface Drizzle {
  execute(query: SqlWrapper): Promise<unknown>
  transaction(fn: (tx: Drizzle) => Promise<unknown>): Promise<unknown>
  rollback?: unknown
  readonly dialect: unknown
  readonly session?: { readonly client?: unknown }
}

interface SqlWrapper {
  getSQL(): SqlWrapper
  toQuery(): { sql: string; params: unknown[] }
}

type Rows = readonly Record<string, unknown>[]

export const drizzleClient: ClientAdapter = {
  library: 'Drizzle',
  transaction: 'the tx of db.transaction(async (tx) => …)',
  adapt(db) {
    if (!hasMethods<Drizzle>(db, 'execute', 'transaction') || !('dialect' in db)) return undefined
    return {
      inTransaction: typeof db.rollback === 'function' && !hasEnded(db),
      query: async (text, params) => {
        try {
          return rowsOf(await db.execute(written(text, params)))
        } catch (error) {
          // DrizzleQueryError quotes the parameters, payloads included; its cause is the driver's.
          throw (error as Error).cause ?? error
        }
      },
    }
  },
}

function hasEnded(tx: Drizzle): boolean {
  return pgClient.adapt(tx.session?.client)?.inTransaction === false
}

/** Looks like `sql` with the statement already written out. */
function written(text: string, params: readonly (string | null)[]): SqlWrapper {
  const wrapper = {
    getSQL: () => wrapper,
    toQuery: () => ({ sql: text, params: [...params] }),
  }
  return wrapper
}

/** postgres.js answers with rows, pg and the others with a result that has them. */
function rowsOf(result: unknown): Rows {
  return Array.isArray(result) ? result : (result as { rows: Rows }).rows
}
