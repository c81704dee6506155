/**
 * postgres.js: the `sql` that `sql.begin` or `sql.savepoint` hands to its callback. A reserved
 * connection cannot tell whether BEGIN was run on it; the top-level `sql` is refused.
 */

import { hasMethods } from './duck.ts'
import type { ClientAdapter, Tx } from './tx.ts'

interface Sql {
  unsafe(text: string, params: unknown[], options: { prepare: boolean }): Promise<Record<string, unknown>[]>
  typed: unknown
  begin?: unknown
  savepoint?: unknown
}

export const postgresJsClient: ClientAdapter = {
  library: 'postgres.js',
  transaction: 'the sql handed to your callback by sql.begin(sql => …)',
  adapt(sql) {
    if (!hasMethods<Sql>(sql, 'unsafe', 'typed')) return undefined
    return {
      inTransaction: inTransaction(sql),
      // Without `prepare` every call asks for the parameter types first: a second round trip.
      // Where prepared statements are switched off (PgBouncer), the connection's option wins.
      query: async (text, params) => (await sql.unsafe(text, [...params], { prepare: true })).map(lowerCased),
    }
  },
}

function inTransaction(sql: Sql): Tx['inTransaction'] {
  if (typeof sql.savepoint === 'function') return true
  return typeof sql.begin === 'function' ? false : 'unknown'
}

/** `transform: postgres.pascal` renames `id` to `Id`. */
function lowerCased(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name.toLowerCase(), value]))
}
