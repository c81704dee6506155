/**
 * The door for transactions of every library: whatever a caller hands to `emit` becomes a `Tx`,
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
import { typeormClient } from './typeorm.ts'

/**
 * What the engine needs of a transaction. Parameters are text or null, each cast in the statement
 * (`$1::text`, arrays as `$1::text::text[]`), and every result column is text under a name of one
 * lower-case word, so that any library carries both unchanged.
 */
export interface Tx {
  /** Rejects with PostgreSQL's own error: `code` is the SQLSTATE. */
  query(
    text: string,
    params: readonly (string | null)[],
    /** Prepare it under this name, where the library can. */
    name?: string,
  ): Promise<readonly Record<string, unknown>[]>
  /** `'unknown'`: the library cannot tell; the statement is then sent as it is. */
  readonly inTransaction: boolean | 'unknown'
}

/** One library: how its transaction is recognised, reached, and obtained by whoever has none. */
export interface ClientAdapter {
  readonly library: string
  /** Completes "pass …" in the refusal. */
  readonly transaction: string
  /** Undefined: not an object of this library. */
  adapt(client: unknown): Tx | undefined
}

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
    `this ${library} object is outside a transaction: the event could not share the fate of your rows`,
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
