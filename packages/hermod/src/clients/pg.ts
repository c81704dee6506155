/**
 * `pg`: a Client or a PoolClient on which BEGIN was run. A Pool is refused, since each of its
 * queries may run on another connection.
 */

import { hasMethods } from './duck.ts'
import type { ClientAdapter, Tx } from './tx.ts'

interface Statement {
  readonly text: string
  readonly values: unknown[]
  readonly name?: string
}

interface PgClient {
  query(statement: Statement): Promise<{ rows: Record<string, unknown>[] }>
  escapeLiteral(text: string): string
  /** Since pg 8.21: the status byte of the last answer. */
  getTransactionStatus?(): string | null
  readonly readyForQuery?: boolean
}

interface PgPool {
  query: PgClient['query']
  connect(): Promise<PgClient>
  readonly totalCount: number
}

export const pgClient: ClientAdapter = {
  library: 'pg',
  transaction: 'the client you ran BEGIN on (await pool.connect()), not the pool',
  adapt(client) {
    if (!isPool(client) && !isClient(client)) return undefined
    return {
      inTransaction: isPool(client) ? false : inTransaction(client),
      query: async (text, params, name) => {
        const values = [...params]
        return (await client.query(name === undefined ? { text, values } : { text, values, name })).rows
      },
    }
  },
}

function isPool(client: unknown): client is PgPool {
  return hasMethods<PgPool>(client, 'query', 'connect') && typeof client.totalCount === 'number'
}

function isClient(client: unknown): client is PgClient {
  return (
    hasMethods<PgClient>(client, 'query', 'getTransactionStatus') ||
    hasMethods<PgClient>(client, 'query', 'escapeLiteral')
  )
}

/**
 * 'E' (aborted) counts as inside, so that PostgreSQL's own error reaches the caller. 'I' while an
 * answer is outstanding proves nothing: it may be the answer to BEGIN (pipelining).
 */
function inTransaction(client: PgClient): Tx['inTransaction'] {
  const status = client.getTransactionStatus?.()
  if (status === 'T' || status === 'E') return true
  return status === 'I' && client.readyForQuery !== false ? false : 'unknown'
}
