/**
 * A database whose every statement has a time limit on the client's side. A connection may go mute: packets vanish without a
 * reset. After the limit it is thrown away, and so are connections that answered last before it; the next statement takes a new one.
 */
import { connect } from 'node:net'
import { type Database, derived, isConnectionError, type PoolClient } from './database.ts'

/** Counts as a lost connection: nobody knows what the statement did. */
class MuteConnection extends Error {
  readonly code = 'ETIMEDOUT'

  constructor(limitMs: number) {
    super(`the database did not answer within ${Math.round(limitMs)} ms; the connection is given up`)
  }
}

/** TCP keep-alive starts after this idle time. */
const keepAliveMs = 30_000

/** When each connection last answered, on the monotonic clock. */
const heardAtMs = new WeakMap<PoolClient, number>()
const welcomed = new WeakSet<PoolClient>()
/** By pool: connections that have not answered since then may be mute too. */
const muteSinceMs = new WeakMap<Database, number>()

/** It has just answered. */
export function heard(client: PoolClient): void {
  heardAtMs.set(client, performance.now())
}

/** How long a statement may take: a fifth of the lease, but a second at least: a busy machine is not mute. */
export function statementMs(leaseMs: number): number {
  return Math.max(leaseMs / 5, 1_000)
}

/** Waiting for a free connection counts. */
export function bounded(db: Database, limitMs: number): Database {
  return derived(db, {
    connect: () => new Bounded(db, limitMs).connect(),
    query: (config) => new Bounded(db, limitMs).ask(config),
  })
}

class Bounded implements PoolClient {
  readonly #db: Database
  readonly #limitMs: number
  #client: PoolClient | undefined
  #gone: Error | undefined

  constructor(db: Database, limitMs: number) {
    this.#db = db
    this.#limitMs = limitMs
  }

  /** One statement on a connection of its own. */
  ask(config: unknown): ReturnType<PoolClient['query']> {
    return this.#within(async () => {
      const client = await this.#take()
      try {
        const answer = await client.query(config)
        this.release()
        return answer
      } catch (error) {
        this.release(isConnectionError(error) ? (error as Error) : undefined)
        throw error
      }
    })
  }

  async connect(): Promise<PoolClient> {
    await this.#within(() => this.#take())
    return this
  }

  query(config: unknown): ReturnType<PoolClient['query']> {
    const client = this.#client
    if (client === undefined) return Promise.reject(this.#gone ?? new Error('the connection was given back'))
    return this.#within(() => client.query(config))
  }

  release(destroy?: boolean | Error): void {
    const client = this.#client
    this.#client = undefined
    if (client === undefined) return
    if (!destroy) heard(client)
    client.release(destroy)
  }

  on(name: string, hear: (...args: unknown[]) => void): unknown {
    return this.#client?.on(name, hear)
  }

  removeListener(name: string, hear: (...args: unknown[]) => void): unknown {
    return this.#client?.removeListener(name, hear)
  }

  /** One timer; the answer of a connection that was given up is ignored. */
  async #within<T>(work: () => Promise<T>): Promise<T> {
    const startedMs = performance.now()
    let timer: NodeJS.Timeout | undefined
    let ended = false
    const silence = new Promise<never>((_, reject) => {
      // What came while this process was busy with something else is read first.
      const giveUp = () => setImmediate(() => !ended && reject(this.#giveUp(startedMs)))
      timer = setTimeout(giveUp, this.#limitMs)
    })
    const answer = work().finally(() => {
      ended = true
    })
    answer.catch(() => {})
    try {
      return await Promise.race([answer, silence])
    } finally {
      clearTimeout(timer)
    }
  }

  #giveUp(startedMs: number): Error {
    const error = new MuteConnection(this.#limitMs)
    this.#gone = error
    const client = this.#client as (PoolClient & Socketed) | undefined
    // Without a connection it waited for a free one: the pool is too small, or others keep them.
    if (client === undefined) return error
    muteSinceMs.set(this.#db, startedMs)
    cancel(client)
    client.connection?.stream?.destroy?.()
    this.release(error)
    return error
  }

  async #take(): Promise<PoolClient> {
    for (;;) {
      const client = await this.#db.connect()
      if (this.#gone !== undefined) {
        client.release()
        throw this.#gone
      }
      welcome(client)
      // A connection that nobody has used yet is new.
      const heardMs = heardAtMs.get(client) ?? Number.POSITIVE_INFINITY
      if (heardMs >= (muteSinceMs.get(this.#db) ?? 0)) {
        this.#client = client
        return client
      }
      // An orderly end would wait for an answer.
      const { connection }: Socketed = client as PoolClient & Socketed
      connection?.stream?.destroy?.()
      client.release(true)
    }
  }
}

interface Socketed {
  readonly connection?: {
    readonly stream?: {
      readonly remoteAddress?: string
      readonly remotePort?: number
      destroy?(): void
      setKeepAlive?(on: boolean, afterMs: number): void
    }
  }
  readonly host?: string
  readonly port?: number
  readonly processID?: unknown
  readonly secretKey?: unknown
}

/** The code of a CancelRequest in PostgreSQL's protocol. */
const cancelRequest = 80_877_102
/** If the network is silent, nobody waits for the request. */
const cancelMs = 2_000

/**
 * Ends the statement on the server, which does not notice that its client is gone while it computes or waits. The request goes the way
 * of the connection itself, so that it is right behind a pooler too.
 */
function cancel(client: Socketed): void {
  const { host = '', port, processID, secretKey } = client
  const { remoteAddress, remotePort } = client.connection?.stream ?? {}
  const to = host.startsWith('/')
    ? { path: `${host}/.s.PGSQL.${port}` }
    : { host: remoteAddress, port: remotePort ?? 0 }
  if (typeof processID !== 'number' || typeof secretKey !== 'number' || !(to.path || to.host)) return
  const message = Buffer.alloc(16)
  message.writeInt32BE(16, 0)
  message.writeInt32BE(cancelRequest, 4)
  message.writeInt32BE(processID, 8)
  message.writeInt32BE(secretKey, 12)
  const socket = connect(to as { host: string; port: number })
  socket.on('error', () => {})
  socket.setTimeout(cancelMs, () => socket.destroy())
  socket.unref()
  socket.end(message)
}

/** Prepares a connection that is new to us: an error outside a statement must not end the process. */
export function welcome(client: PoolClient & Socketed): void {
  if (welcomed.has(client)) return
  welcomed.add(client)
  client.on('error', () => {})
  client.connection?.stream?.setKeepAlive?.(true, keepAliveMs)
}
