/**
 * Prisma: the tx of an interactive `$transaction`. It has no `$connect`; the client itself, and an
 * extended one, have.
 */

import { hasMethods, isObject } from './duck.ts'
import type { ClientAdapter } from './tx.ts'

interface Prisma {
  $queryRawUnsafe(text: string, ...params: unknown[]): Promise<Record<string, unknown>[]>
  $connect?: unknown
}

export const prismaClient: ClientAdapter = {
  library: 'Prisma',
  transaction: 'the tx of prisma.$transaction(async (tx) => …)',
  adapt(prisma) {
    if (!hasMethods<Prisma>(prisma, '$queryRawUnsafe')) return undefined
    return {
      inTransaction: typeof prisma.$connect !== 'function',
      query: async (text, params) => {
        try {
          return await prisma.$queryRawUnsafe(text, ...params)
        } catch (error) {
          throw databaseError(error)
        }
      },
    }
  },
}

/**
 * Prisma says P2010 and keeps PostgreSQL's fields in `meta`: of the driver adapter's error since
 * version 6, bare before. Those fields become the error, Prisma's own its cause.
 */
function databaseError(error: unknown): unknown {
  if (!isObject(error) || !isObject(error.meta)) return error
  const { meta } = error
  const fields = isObject(meta.driverAdapterError) ? meta.driverAdapterError.cause : meta
  if (!isObject(fields)) return error
  const code = fields.originalCode ?? fields.code
  if (typeof code !== 'string') return error
  const message = String(fields.originalMessage ?? fields.message)
  const { severity, detail, hint } = fields
  return Object.assign(new Error(message, { cause: error }), { code, severity, detail, hint })
}
