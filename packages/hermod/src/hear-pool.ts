/**
 * Listens to the errors of a pool. When the server ends an idle connection, `pg` emits `error` on the pool, and an `error` event
 * without a handler ends the process. Attached once per pool; the outbox created last on it is told.
 */
import { heard, welcome } from './bounded.ts'
import type { PoolClient } from './database.ts'
import { type Listener, notify } from './telemetry.ts'

const hearing = new WeakMap<object, { listener: Listener }>()

export function hearPool(pool: object, listener: Listener): void {
  const known = hearing.get(pool)
  if (known !== undefined) {
    known.listener = listener
    return
  }
  const { on } = pool as { on?: (name: string, hear: (...args: never[]) => void) => unknown }
  if (typeof on !== 'function') return
  const told = { listener }
  hearing.set(pool, told)
  // The pool has already removed the connection; the next statement takes another.
  on.call(pool, 'error', (error: unknown) => notify(told.listener, 'error', { during: 'idle connection', error }))
  // At once: the same packet may already contain the message that the server ends it.
  on.call(pool, 'acquire', (client: PoolClient) => welcome(client))
  // It answered somebody, so it was alive then.
  on.call(pool, 'release', (error: unknown, client: PoolClient | undefined) => {
    if (!error && client !== undefined) heard(client)
  })
}
