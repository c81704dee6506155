// What the cases of upkeep share: leaves of ten rows, a fast way through the days, and an engine
// with one subscription.

import { expect } from 'vitest'
import type { Env } from '../../../../../test/support/case.ts'
import type { TestDatabase } from '../../../../../test/support/database.ts'
import type { Retention } from '../../../src/options.ts'
import type { WarningEvent } from '../../../src/telemetry.ts'

export const dayMs = 86_400_000

/** Ranges of ten from 1 on, `count` of them, then one of a million; of the log and the events. */
export async function tinyLeaves(db: TestDatabase, count = 3): Promise<void> {
  for (const parent of ['event', 'log', 'attempt']) {
    await db.query(`drop table outbox.${parent}_0000000000000000001`)
    for (let n = 0; n < count; n++) {
      await db.query('select outbox.add_partition($1, $2, $3)', [parent, n * 10 + 1, n * 10 + 11])
    }
    const top = count * 10 + 1
    await db.query('select outbox.add_partition($1, $2, $3)', [parent, top, top + 1_000_000])
  }
}

export const leafName = (parent: string, from: number) => `${parent}_${String(from).padStart(19, '0')}`

/** Emits `count` events of distinct documents in one transaction; `from` numbers them. */
export async function emitMany(db: TestDatabase, count: number, prefix = 'd'): Promise<void> {
  await db.query(
    `select outbox.emit('document.updated', 'document', $2 || n, json_build_object('n', n)) from generate_series(1, $1) n`,
    [count, prefix],
  )
}

export async function numberAll(db: TestDatabase): Promise<void> {
  for (;;) {
    const [row] = await db.query('select more from outbox.sequence()')
    if (row?.more !== true) return
  }
}

export async function rowsIn(db: TestDatabase, leaf: string): Promise<number> {
  const [found] = await db.query('select to_regclass($1)::text as name', [`outbox.${leaf}`])
  if (!found?.name) return -1
  const [row] = await db.query(`select count(*)::int as rows from outbox.${leaf}`)
  return Number(row?.rows)
}

export const setup = async ({ db, engine }: Env, retention: Partial<Retention> = {}) => {
  const warnings: WarningEvent[] = []
  const errors: unknown[] = []
  const listener = {
    warning: (event: WarningEvent) => void warnings.push(event),
    error: (event: { error: unknown }) => void errors.push(event.error),
  }
  const { Upkeep } = await engine.load<typeof import('../../../src/worker/upkeep/upkeep.ts')>('worker/upkeep/upkeep.ts')
  const { workerOptions } = await engine.load<typeof import('../../../src/options.ts')>('options.ts')
  const upkeep = new Upkeep(db.pool, workerOptions({ retention }), listener)
  const clock = await engine.testing.fakeClock(db.pool)
  const sink = engine.testing.memorySink()
  const outbox = engine.createOutbox({ pool: db.pool, listener })
  /** One turn of upkeep; what it did. */
  const turn = async () => {
    await upkeep.once()
    expect(errors, 'errors of upkeep').toEqual([])
    return upkeep.last ?? { dropped: [], emptied: [], held: new Map<string, string>() }
  }
  return { turn, upkeep, clock, sink, outbox, warnings, errors }
}

/** The auditor's count: events of finished windows that are in no log, unless retention took it. */
export async function missing(db: TestDatabase): Promise<number> {
  const [row] = await db.query('select missing::int from outbox.count_missing(true)')
  return Number(row?.missing)
}
