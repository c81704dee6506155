/**
 * Knex: the trx of `knex.transaction`, until it is completed. `raw` takes `?` and runs the
 * application's response hooks, so statements go to the connection that the trx holds.
 */

import { hasMethods } from './duck.ts'
import type { ClientAdapter } from './tx.ts'

interface Knex {
  raw: unknown
  transaction: unknown
  readonly client: { acquireConnection(): Promise<PgConnection> }
  readonly isTransaction?: boolean
  isCompleted?(): boolean
}

interface PgConnection {
  query(text: string, values: unknown[]): Promise<{ rows: Record<string, unknown>[] }>
}

export const knexClient: ClientAdapter = {
  library: 'Knex',
  transaction: 'the trx of knex.transaction(async (trx) => …) before it ends',
  adapt(knex) {
    if (!hasMethods<Knex>(knex, 'raw', 'transaction')) return undefined
    if (!hasMethods<Knex['client']>(knex.client, 'acquireConnection')) return undefined
    return {
      inTransaction: knex.isTransaction === true && knex.isCompleted?.() !== true,
      query: async (text, params) => {
        const connection = await knex.client.acquireConnection()
        return (await connection.query(text, [...params])).rows
      },
    }
  },
}
