/**
 * Accepts transactions of every library: whatever a caller passes to `emit` becomes a `Tx`,
 * or a coded error that says what to pass instead. Libraries are recognised by their shape, never
 * imported.
 */
import { HermodError } from '../errors.ts'
import { drizzleClient } from './drizzle.ts'
import { isObject } from './duck.ts'
import { knexClient } from './knex.ts'
import { kyselyClient } from './kysely.ts'
import { pgClient } from './pg.ts'
import { postgresJsClient } from './postgres-js.ts'
import { prismaClient } from './prisma.ts'
import type { ClientAdapter, Tx } from './tx.ts'
import { typeormClient } from './typeorm.ts'

export type { Tx } from './tx.ts'

/** A transaction of a library that has no adapter, wrapped by the caller. */
const ownClient: ClientAdapter = {
  library: 'your own adapter',
  transaction: 'an object whose inTransaction is true',
  adapt: (client) => (isTx(client) ? client : undefined),
}

const adapters: readonly ClientAdapter[] = [
  ownClient,
  pgClient,
  postgresJsClient,
  kyselyClient,
  drizzleClient,
  knexClient,
  typeormClient,
  prismaClient,
]

export function asTx(client: unknown): Tx {
  for (const adapter of adapters) {
    const tx = adapter.adapt(client)
    if (tx === undefined) continue
    if (tx.inTransaction === false) throw outside(adapter)
    return tx
  }
  throw unknown(client)
}

function isTx(client: unknown): client is Tx {
  if (!isObject(client) || typeof client.query !== 'function') return false
  return typeof client.inTransaction === 'boolean' || client.inTransaction === 'unknown'
}

function outside({ library, transaction }: ClientAdapter): HermodError {
  return new HermodError(
    'HMD_EMIT_OUTSIDE_TRANSACTION',
    `this ${library} object is outside a transaction: the event could not commit or roll back together with your rows`,
    { fix: `Pass ${transaction}, or use outbox.transaction(fn).`, details: { library } },
  )
}

function unknown(client: unknown): HermodError {
  const known = adapters.slice(1).map((adapter) => adapter.library)
  const got = client instanceof Promise ? 'a Promise (is an await missing?)' : nameOf(client)
  return new HermodError('HMD_CLIENT_UNKNOWN', `expected a transaction of ${known.join(', ')}, but got ${got}`, {
    fix:
      'Pass the transaction object of one of these libraries, or wrap yours: ' +
      '{ query: async (text, params) => rows, inTransaction: true }.',
  })
}

function nameOf(value: unknown): string {
  if (!isObject(value)) return value === null ? 'null' : typeof value
  const name: unknown = value.constructor?.name
  return typeof name === 'string' && name !== '' ? `an object (${name})` : 'an object'
}
