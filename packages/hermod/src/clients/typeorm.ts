/**
 * TypeORM: the EntityManager of `dataSource.transaction`, or a QueryRunner on which
 * `startTransaction` was called. A DataSource and its own manager are refused.
 */

import { hasMethods, isObject } from './duck.ts'
import type { ClientAdapter } from './tx.ts'

interface QueryRunner {
  query(text: string, params: unknown[], structured: true): Promise<{ records?: Record<string, unknown>[] }>
  startTransaction(): Promise<void>
  readonly isTransactionActive: boolean
}

interface EntityManager {
  query: unknown
  getRepository: unknown
  transaction: unknown
  readonly queryRunner?: QueryRunner
}

export const typeormClient: ClientAdapter = {
  library: 'TypeORM',
  transaction: 'the manager of dataSource.transaction(async (manager) => …)',
  adapt(client) {
    if (!isObject(client)) return undefined
    const managed = hasMethods<EntityManager>(client, 'query', 'getRepository', 'transaction')
    const runner = managed ? client.queryRunner : client
    if (hasMethods<QueryRunner>(runner, 'query', 'startTransaction')) {
      return {
        inTransaction: runner.isTransactionActive,
        query: (text, params) => records(runner, text, params),
      }
    }
    return managed ? { inTransaction: false, query: async () => [] } : undefined
  },
}

async function records(runner: QueryRunner, text: string, params: readonly (string | null)[]) {
  try {
    return (await runner.query(text, [...params], true)).records ?? []
  } catch (error) {
    // QueryFailedError carries the parameters, payloads included.
    throw (error as { driverError?: unknown }).driverError ?? error
  }
}
