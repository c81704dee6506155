/**
 * What has to be done periodically: partitions, retention, pruning, statistics. Any number of workers run
 * it; each piece is done by the worker that gets its turn, and none of them disturbs delivery.
 */
import { type Database, select } from '../../database.ts'
import type { ResolvedWorkerOptions } from '../../options.ts'
import { type Listener, notify } from '../../telemetry.ts'
import { removeExpired } from './expired.ts'
import { addPartitions, DefaultLeaf } from './partitions.ts'
import { Forgotten, type RetentionResult, retain } from './retention.ts'
import { type Trimmed, trim } from './trim.ts'

const TURN = 'select outbox.upkeep_turn($1, $2)::text as mine'
const PRUNE = `select coalesce(max(rows), 0)::text as most
  from outbox.prune($1::numeric, $2::numeric, $3::numeric, $4)`
const ANALYZE = `analyze (skip_locked) outbox.subscription, outbox.filter, outbox.lane, outbox.cursor, outbox.delivery,
  outbox.kind, outbox.step, outbox.scheduled, outbox.idempotency, outbox.inbox, outbox.worker`

export const upkeepMs = 10_000
/** A worker that starts delivers first: the backlog matters more. */
const firstMs = 1_000
const analyzeMs = 600_000
const trimMs = 60_000
const pruneRows = 1_000
const pruneCallsMax = 100

type Piece = 'partitions' | 'retention' | 'trim' | 'prune' | 'analyze'

export class Upkeep {
  readonly #db: Database
  readonly #options: ResolvedWorkerOptions
  readonly #listener: Listener
  readonly #everyMs: number
  readonly #defaultLeaf = new DefaultLeaf()
  readonly #forgotten = new Forgotten()
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #stopping = false
  /** The last turn's outcome, for tests and whoever asks. */
  last: RetentionResult | undefined
  trimmed: Trimmed | undefined

  constructor(db: Database, options: ResolvedWorkerOptions, listener: Listener, everyMs = upkeepMs) {
    this.#db = db
    this.#options = options
    this.#listener = listener
    this.#everyMs = everyMs
  }

  start(): void {
    const first = () => {
      this.#tick()
      this.#timer = setInterval(() => this.#tick(), this.#everyMs).unref()
    }
    this.#timer = setTimeout(first, Math.min(firstMs, this.#everyMs)).unref()
  }

  /** Does every piece now, whoever had the last turn; errors are reported, not thrown. */
  async once(): Promise<void> {
    await this.#running
    await this.#turn(0)
  }

  async stop(): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#timer)
    await this.#running
  }

  #tick(): void {
    // Slightly less than the interval, so that one worker alone does not miss every second turn.
    this.#running ??= this.#turn(Math.floor(this.#everyMs * 0.9)).finally(() => {
      this.#running = undefined
    })
  }

  async #turn(everyMs: number): Promise<void> {
    const { retention } = this.#options
    await this.#piece('partitions', everyMs, async () => {
      await addPartitions(this.#db, retention)
      await this.#defaultLeaf.look(this.#db, this.#listener)
    })
    await this.#piece('retention', everyMs, async () => {
      this.last = await retain(this.#db, retention, this.#listener)
      await this.#forgotten.look(this.#db, this.#listener, retention.eventDays)
    })
    await this.#piece('trim', everyMs === 0 ? 0 : trimMs, async () => {
      const unarchived = (leaf: string) => this.last?.held.get(leaf) === 'not archived'
      this.trimmed = await trim(this.#db, retention, this.#listener, unarchived)
    })
    await this.#piece('prune', everyMs, () => this.#prune())
    await this.#piece('analyze', everyMs === 0 ? 0 : analyzeMs, async () => {
      await this.#db.query({ text: ANALYZE })
    })
  }

  async #piece(name: Piece, everyMs: number, work: () => Promise<void>): Promise<void> {
    if (this.#stopping) return
    try {
      const [turn] = await select(this.#db, TURN, [name, everyMs])
      if (turn?.mine === 'true') await work()
    } catch (error) {
      notify(this.#listener, 'error', { during: `upkeep ${name}`, error })
    }
  }

  async #prune(): Promise<void> {
    const { retention } = this.#options
    const days = [retention.eventDays, retention.deliveryDays, retention.keyDays]
    for (let call = 0; call < pruneCallsMax && !this.#stopping; call++) {
      const expired = await removeExpired(this.#db, retention, pruneRows, this.#listener)
      const [row] = await select(this.#db, PRUNE, [...days, pruneRows])
      if (Math.max(expired, Number(row?.most ?? 0)) < pruneRows) return
    }
  }
}
