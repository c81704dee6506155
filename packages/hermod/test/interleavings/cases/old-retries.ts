// Dead letters of last week, retried today: the log between them and the cursor is read once, not once for each.

import { expect } from 'vitest'
import { defineCase, type Env } from '../../../../../test/support/case.ts'
import type { OutboxEvent } from '../../../src/event.ts'
import type { Outcome } from '../../../src/sinks/outcome.ts'
import { quiet, stage, WatchedPool } from './stage.ts'

const letters = 100
const rows = 200_000
/** Far below the limit of a statement, which is a fifth of the lease: 9 s. */
const limitMs = 1_000
const verbOf = (text: string) => /outbox\.(read|settle)\(/.exec(text)?.[1]

/** A pool that knows how long the slowest read and the slowest settle took. */
function timed(env: Env) {
  const pool = new WatchedPool(env.db.pool)
  const slowest: Record<string, number> = {}
  let sentMs = 0
  pool.before = (text) => {
    if (verbOf(text)) sentMs = performance.now()
  }
  pool.after = (text) => {
    const verb = verbOf(text)
    if (verb) slowest[verb] = Math.round(Math.max(slowest[verb] ?? 0, performance.now() - sentMs))
  }
  return { pool, slowest }
}

/** One lane: the letters, then everything else, then a second event of every fourth letter. */
function oldRetries(what: string, coalesce: 'latest' | 'none', sent: number) {
  return defineCase(`old-retries: ${what}`, async (env) => {
    const s = await stage(env)
    await s.db.query('update outbox.setting set lanes = 1')
    let answer: (() => Outcome) | undefined = () => s.say.rejected()
    const got: string[] = []
    const sink = async (events: readonly OutboxEvent[]) => {
      if (answer === undefined) got.push(...events.map(({ aggregateId }) => aggregateId))
      return answer && events.map(answer)
    }
    const { pool, slowest } = timed(env)
    const outbox = s.outbox(sink as never, { pool, subscription: { onDead: 'hold', coalesce, lanes: 1 } })
    const once = () => outbox.runOnce({ ...quiet, concurrency: 1 })
    await s.bulk(letters, `'doc.changed'`, `'letter' || n`)
    await once()
    await s.bulk(rows, `'doc.changed'`, `'other' || n`)
    await s.bulk(letters / 4, `'doc.changed'`, `'letter' || n * 4`)
    await s.db.query(`update outbox.cursor set pos = (select max(pos) from outbox.log) where subscription = 'all'`)
    await s.db.query('analyze outbox.log')
    const retry = () => outbox.retry('all', { state: 'dead' }, { actor: 'op', reason: 'it is back' })
    expect(await retry()).toMatchObject({ retried: letters })
    for (const verb of Object.keys(slowest)) delete slowest[verb]
    for (const round of ['fails again', 'passes']) {
      if (round === 'passes') answer = undefined
      await once()
      await retry()
    }
    await once()
    expect(slowest.read, `milliseconds of the slowest read and settle: ${JSON.stringify(slowest)}`).toBeLessThan(
      limitMs,
    )
    expect(slowest.settle, `milliseconds of the slowest read and settle: ${JSON.stringify(slowest)}`).toBeLessThan(
      limitMs,
    )
    expect(got.length, 'events sent after all').toBe(sent)
    expect(new Set(got).size).toBe(letters)
    expect(await s.rows(), 'rows left').toEqual([])
  })
}

export const oldRetriesInOrder = oldRetries('in order', 'none', letters + letters / 4)
export const oldRetriesNewest = oldRetries('only the newest', 'latest', letters + letters / 4)
