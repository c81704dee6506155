/**
 * What a pool says beside its answers. When the server ends an idle connection, `pg` emits `error` on the pool, and an error
 * that nobody hears ends the process. Attached once per pool; the outbox made last on it is told.
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
  // The pool has removed the connection already; the next statement takes another.
  on.call(pool, 'error', (error: unknown) => notify(told.listener, 'error', { during: 'idle connection', error }))
  // At once: its next message may be that the server ends it, in the same packet.
  on.call(pool, 'acquire', (client: PoolClient) => welcome(client))
  // Whoever used it: it was alive then.
  on.call(pool, 'release', (error: unknown, client: PoolClient | undefined) => {
    if (!error && client !== undefined) heard(client)
  })
}
