/** Kysely: a Transaction or a ControlledTransaction that is neither committed nor rolled back. */

import { hasMethods } from './duck.ts'
import type { ClientAdapter } from './tx.ts'

interface Kysely {
  executeQuery(query: CompiledQuery): Promise<{ rows: Record<string, unknown>[] }>
  /** Plugins rename columns (CamelCasePlugin). */
  withoutPlugins(): Kysely
  readonly isTransaction: boolean
  readonly isCommitted?: boolean
  readonly isRolledBack?: boolean
}

interface CompiledQuery {
  readonly sql: string
  readonly parameters: readonly unknown[]
  readonly query: { kind: 'RawNode'; sqlFragments: readonly string[]; parameters: readonly [] }
  readonly queryId: { readonly queryId: string }
}

export const kyselyClient: ClientAdapter = {
  library: 'Kysely',
  transaction: 'the trx of db.transaction().execute(async (trx) => …)',
  adapt(db) {
    if (!hasMethods<Kysely>(db, 'executeQuery', 'withoutPlugins')) return undefined
    return {
      inTransaction: db.isTransaction && !db.isCommitted && !db.isRolledBack,
      query: async (text, params) => (await db.withoutPlugins().executeQuery(compiled(text, params))).rows,
    }
  },
}

/** What `CompiledQuery.raw(text, params)` returns. */
function compiled(text: string, params: readonly (string | null)[]): CompiledQuery {
  return {
    sql: text,
    parameters: params,
    query: { kind: 'RawNode', sqlFragments: [text], parameters: [] },
    queryId: { queryId: 'hermod' },
  }
}
