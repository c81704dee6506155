/**
 * LISTEN as a hint: a connection of its own that passes wake-ups on, checks itself with a heartbeat, and
 * reconnects after it broke. Behind a transaction pooler it hears nothing, and polling finds the events.
 */
import type { Database, PoolClient } from '../database.ts'
import { notify, type Listener as Telemetry } from '../telemetry.ts'
import { channel } from './news.ts'

const heartbeatMs = 15_000
const heartbeatAnswerMs = 5_000
const reconnectMs = 1_000

export class Listen {
  readonly #db: Database
  readonly #hear: (message?: { payload?: string }) => void
  readonly #listener: Telemetry
  #client: PoolClient | undefined
  #stopped = false
  #timer: NodeJS.Timeout | undefined
  #connecting: Promise<void> = Promise.resolve()

  constructor(db: Database, listener: Telemetry, hear: (message?: { payload?: string }) => void) {
    this.#db = db
    this.#listener = listener
    this.#hear = hear
  }

  get up(): boolean {
    return this.#client !== undefined
  }

  start(): void {
    this.#connecting = this.#connect()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#connecting
    this.#drop()
  }

  async #connect(): Promise<void> {
    try {
      const client = await this.#db.connect()
      if (this.#stopped) return client.release()
      client.on('notification', this.#hear)
      client.on('error', this.#broken)
      this.#client = client
      await answered(client.query(`listen ${channel}`))
      this.#hear()
      this.#later(heartbeatMs, () => this.#beat(client))
    } catch (error) {
      this.#broken(error as Error)
    }
  }

  async #beat(client: PoolClient): Promise<void> {
    try {
      await answered(client.query('select 1'))
      this.#later(heartbeatMs, () => this.#beat(client))
    } catch (error) {
      this.#broken(error as Error)
    }
  }

  readonly #broken = (error: Error): void => {
    this.#drop(error)
    if (this.#stopped) return
    notify(this.#listener, 'error', { during: 'listen', error })
    this.#later(reconnectMs, () => {
      this.#connecting = this.#connect()
      return this.#connecting
    })
  }

  #drop(error: Error | boolean = true): void {
    const client = this.#client
    this.#client = undefined
    if (client === undefined) return
    client.removeListener('notification', this.#hear)
    // A destroyed client may still emit an error; without a handler it would end the process.
    client.on('error', () => {})
    client.release(error)
  }

  #later(ms: number, work: () => Promise<void>): void {
    clearTimeout(this.#timer)
    if (!this.#stopped) this.#timer = setTimeout(work, ms).unref()
  }
}

/** Rejects if there is no answer in time, so that a mute connection is replaced. */
async function answered(asked: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer from the listening connection')), heartbeatAnswerMs)
  })
  asked.catch(() => {})
  await Promise.race([asked, silence]).finally(() => clearTimeout(timer))
}
