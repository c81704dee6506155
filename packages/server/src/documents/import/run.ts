/**
 * An import from the spool into the database: all of it in one transaction, or batch by batch, each
 * batch with its note of how far it came. Until the first statement nothing was written; after a
 * refusal nothing is.
 */
import type { Actor } from '../../actor.ts'
import { errorFields } from '../../log-fields.ts'
import { type Platform, type Tx, transaction } from '../../platform.ts'
import { Addresses } from './people.ts'
import { errorsMax, type Received } from './receive.ts'
import { type Claim, endImport, type ImportRecord, noteBatch, noteProgress } from './record.ts'
import type { ImportRow, RowError } from './rows.ts'
import { type BatchOptions, type BatchResult, CHECK_TABLE, importBatch, refusalOf } from './write.ts'

export interface RunOptions {
  /** Rows looked at so far. */
  readonly onProgress?: ((row: number) => void) | undefined
  /** Stops after the current batch. */
  readonly signal?: AbortSignal | undefined
}

const progressMs = 1_000

/** What every part of a run needs. */
interface Run extends RunOptions {
  readonly platform: Platform
  readonly actor: Actor
  readonly received: Received
  readonly addresses: Addresses
}

export interface Counted {
  readonly imported: number
  readonly failed: number
  readonly errors: readonly RowError[]
}

function runOf(platform: Platform, actor: Actor, received: Received, options: RunOptions): Run {
  return { platform, actor, received, addresses: new Addresses(), ...options }
}

/** Writes what was claimed and closes its record. */
export async function writeImport(
  platform: Platform,
  actor: Actor,
  received: Received,
  claim: Claim,
  options: RunOptions = {},
): Promise<ImportRecord> {
  const run = runOf(platform, actor, received, options)
  try {
    if (claim.record.mode === 'best-effort') return await bestEffort(run, claim)
    return await allOrNothing(run, claim)
  } catch (error) {
    // A best-effort import keeps what was written, and its key: the same request continues from there.
    if (claim.record.mode === 'all') await giveUp(run, claim, error)
    throw error
  }
}

async function giveUp({ platform }: Run, claim: Claim, error: unknown): Promise<void> {
  const reason = 'It was interrupted; nothing was imported.'
  platform.log.error({ code: 'import.failed', import: claim.record.id, ...errorFields(error) })
  const failure = { reason, failed: 0, errors: [] }
  await endImport(platform.pool, claim, 'failed', failure).catch(() => {})
}

/** What an import would say, without writing anything. */
export function checkImport(
  platform: Platform,
  actor: Actor,
  received: Received,
  options: RunOptions = {},
): Promise<Counted> {
  const run = runOf(platform, actor, received, options)
  return rolledBack(platform, async (tx) => {
    const tally = new Tally(received)
    await tx.query(CHECK_TABLE)
    await eachBatch(run, tx, { check: true, careful: false }, tally)
    const { failed, errors } = tally.counted()
    return { imported: received.rows - failed, failed, errors }
  })
}

async function allOrNothing(run: Run, claim: Claim): Promise<ImportRecord> {
  const { platform, received } = run
  if (received.failed > 0) return refuse(run, claim, await checkImport(platform, run.actor, received))
  try {
    return await transaction(platform, (tx) => writeAll(run, claim, tx))
  } catch (error) {
    if (error instanceof Refused) return refuse(run, claim, error.counted)
    if (refusalOf(error) === undefined) throw error
    return refuse(run, claim, await culprits(run, error))
  }
}

async function writeAll(run: Run, claim: Claim, tx: Tx): Promise<ImportRecord> {
  const { received } = run
  const tally = new Tally(received)
  const beating = heartbeat(run, claim)
  try {
    await lockProducts(tx, received)
    const writing = { check: false, careful: false }
    await eachBatch({ ...run, onProgress: beating.note }, tx, writing, tally)
  } finally {
    await beating.end()
  }
  const { imported, failed, errors } = tally.counted()
  if (failed > 0) throw new Refused({ imported: 0, failed, errors })
  await noteBatch(tx, claim, received.rows, { imported, failed: 0, errors: [] })
  return endImport(tx, claim, 'succeeded')
}

/** Rows are wrong: the record says which, the documents stay as they were. */
function refuse({ platform }: Run, claim: Claim, { failed, errors }: Counted) {
  const reason = `${failed} of ${claim.record.total} rows are wrong; nothing was imported.`
  return endImport(platform.pool, claim, 'failed', { reason, failed, errors })
}

class Refused extends Error {
  readonly counted: Counted
  constructor(counted: Counted) {
    super('refused')
    this.counted = counted
  }
}

/** The database refused a batch without naming the row: all batches run again with care, to find it. */
function culprits(run: Run, original: unknown): Promise<Counted> {
  return rolledBack(run.platform, async (tx) => {
    const tally = new Tally(run.received)
    await eachBatch(run, tx, { check: false, careful: true }, tally)
    const counted = tally.counted()
    if (counted.failed === 0) throw original
    return counted
  })
}

async function bestEffort(run: Run, claim: Claim): Promise<ImportRecord> {
  const { platform, received, addresses } = run
  const doneBefore = claim.record.done
  for await (const batch of received.spool.batches()) {
    const last = lastRow(batch)
    if (last <= doneBefore) continue
    run.signal?.throwIfAborted()
    await committed(platform, async (tx, careful) => {
      const options = { addresses, check: false, careful }
      const result = await importBatch(platform, tx, run.actor, batch, options)
      await noteBatch(tx, claim, last, result)
    })
    run.onProgress?.(last)
  }
  return endImport(platform.pool, claim, 'succeeded')
}

/** Tries once at full speed; if the data is refused, once more with care. */
async function committed(platform: Platform, work: (tx: Tx, careful: boolean) => Promise<void>): Promise<void> {
  try {
    await transaction(platform, (tx) => work(tx, false))
  } catch (error) {
    if (refusalOf(error) === undefined) throw error
    await transaction(platform, (tx) => work(tx, true))
  }
}

/**
 * After the first wrong row nothing is written any more, the rest is only checked. While the database
 * writes one batch the next is made ready: a third of the time. With care, one after the other.
 */
async function eachBatch(
  run: Run,
  tx: Tx,
  { check, careful }: Omit<BatchOptions, 'addresses'>,
  tally: Tally,
): Promise<void> {
  const { platform, actor, received, addresses } = run
  let checking = check
  const under = new UnderWay(tally)
  try {
    for await (const batch of received.spool.batches()) {
      run.signal?.throwIfAborted()
      if (tally.failed > 0 && !checking && !careful) {
        await under.settle()
        await tx.query(CHECK_TABLE)
        checking = true
      }
      const options = { addresses, check: checking, careful }
      await under.follow(importBatch(platform, tx, actor, batch, options))
      if (checking || careful) await under.settle()
      run.onProgress?.(lastRow(batch))
    }
    await under.settle()
  } finally {
    await under.end()
  }
}

/** The batches in flight. Leaving waits for them, so that nothing is written after a rollback. */
class UnderWay {
  readonly #tally: Tally
  readonly #all = new Set<Promise<unknown>>()
  #last: Promise<BatchResult> | undefined

  constructor(tally: Tally) {
    this.#tally = tally
  }

  /** Waits for the one before. */
  async follow(next: Promise<BatchResult>): Promise<void> {
    const ended = next.catch(() => {}).finally(() => this.#all.delete(ended))
    this.#all.add(ended)
    await this.settle()
    this.#last = next
  }

  async settle(): Promise<void> {
    const last = this.#last
    this.#last = undefined
    if (last !== undefined) this.#tally.add(await last)
  }

  async end(): Promise<void> {
    await Promise.all(this.#all)
  }
}

function lastRow(batch: readonly ImportRow[]): number {
  return batch.at(-1)?.row ?? 0
}

class Tally {
  failed: number
  #imported = 0
  readonly #errors: RowError[]

  constructor({ failed, errors }: Received) {
    this.failed = failed
    this.#errors = [...errors]
  }

  add({ imported, failed, errors }: Counted): void {
    this.#imported += imported
    this.failed += failed
    this.#errors.push(...errors.slice(0, 2 * errorsMax - this.#errors.length))
  }

  counted(): Counted {
    const errors = this.#errors.sort((a, b) => a.row - b.row).slice(0, errorsMax)
    return { imported: this.#imported, failed: this.failed, errors }
  }
}

/** In a fixed order, so that two imports cannot deadlock. */
async function lockProducts(tx: Tx, { products }: Received): Promise<void> {
  await tx.query(
    `insert into hermod.product_number as n (product, last) select p, 0 from unnest($1::text[]) p order by p
       on conflict (product) do update set last = n.last`,
    [[...products]],
  )
}

class RolledBack extends Error {}

async function rolledBack<T>(platform: Platform, work: (tx: Tx) => Promise<T>): Promise<T> {
  const result: { value?: T } = {}
  await transaction(platform, async (tx) => {
    result.value = await work(tx)
    throw new RolledBack()
  }).catch((error) => {
    if (!(error instanceof RolledBack)) throw error
  })
  return result.value as T
}

/** Tells the record how far a long transaction is. */
function heartbeat({ platform, onProgress }: Run, claim: Claim) {
  let row = 0
  let writing: Promise<unknown> = Promise.resolve()
  const beat = () => {
    writing = writing.then(() => noteProgress(platform.pool, claim, row)).catch(() => {})
  }
  const timer = setInterval(beat, progressMs).unref()
  return {
    note: (done: number) => {
      row = done
      onProgress?.(done)
    },
    end: () => {
      clearInterval(timer)
      return writing
    },
  }
}
