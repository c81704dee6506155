/**
 * The parts every room works with, assembled once: database, outbox, search engine, clock, log.
 * A command is one transaction: its changes and its event commit or roll back together.
 */
import type { NewEvent, Outbox } from 'hermod'
import type { SearchEngine } from 'hermod/sinks/search'
import type { Pool, PoolClient } from 'pg'
import type { Logger } from 'pino'
import type { Config } from './config.ts'

/** A client inside a transaction. */
export type Tx = PoolClient

export interface Platform {
  readonly config: Config
  readonly pool: Pool
  readonly outbox: Outbox
  readonly search: SearchEngine
  readonly log: Logger
  readonly clock: () => Date
}

/** Anything that can be asked: a pool outside, a client inside a transaction. */
export type Asked = Pick<Pool, 'query'> | Tx

/** Errors worth another try: serialization failure and deadlock. */
const AGAIN = new Set(['40001', '40P01'])
const triesMax = 3

export async function transaction<T>({ outbox }: Pick<Platform, 'outbox'>, work: (tx: Tx) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await outbox.transaction((client) => work(client as unknown as Tx))
    } catch (error) {
      const { code } = (error ?? {}) as { code?: string }
      if (tries === triesMax || code === undefined || !AGAIN.has(code)) throw error
    }
  }
}

/** The event's id, or undefined where the outbox is turned off. */
export async function emit(
  { config, outbox }: Pick<Platform, 'config' | 'outbox'>,
  tx: Tx,
  event: NewEvent,
): Promise<bigint | undefined> {
  if (!config.outbox) return undefined
  const [id] = await outbox.emit(tx, event)
  return id
}
