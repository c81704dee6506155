// What people do in the middle of it: replay a subscription, rebuild an index. Both are asked for
// through the engine; workers carry them out.

import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { declareCatalogue } from '../catalogue.mjs'
import { importEngine } from '../engine.mjs'
import { callMs } from '../options.mjs'
import { withClient } from '../stage.mjs'

const replayedMax = 300
const by = { actor: 'chaos', reason: 'in the middle of a run' }

/** An outbox of the conductor that declares what the workers declare. */
async function desk(stage) {
  if (stage.desk !== undefined) return stage.desk
  const hermod = await importEngine(stage.engine)
  const pool = new pg.Pool({ connectionString: stage.url, max: 2, application_name: 'conductor' })
  pool.on('error', () => {})
  const outbox = hermod.createOutbox({ pool })
  const sub = stage.subscriptions.find(({ table }) => table)
  if (sub !== undefined) await declareCatalogue(hermod, outbox, { engine: stage.engine, pool, sub, callMs })
  stage.desk = { outbox, pool, asked: [] }
  return stage.desk
}

/** The last positions again: few enough that a slow machine ends in time. */
export async function replay(stage, { sub }) {
  const { outbox, asked } = await desk(stage)
  const range = await withClient(stage.url, async (client) => {
    const { rows } = await client.query('select coalesce(max(pos), 0)::int as head from outbox.log')
    return { from: stage.replayFrom ?? Math.max(1, rows[0].head - replayedMax), head: rows[0].head }
  })
  if (range.head === 0) return { happened: false, why: 'nothing to replay' }
  const { id } = await outbox.journeys.replay(sub, { from: range.from, ...by })
  asked.push(id)
  stage.history.write({ k: 'replay', sub, id: String(id), ...range })
  return { happened: true, id: String(id) }
}

export async function rebuild(stage) {
  const { outbox, asked } = await desk(stage)
  const { id } = await outbox.rebuild('catalogue', { keepMs: 500 }, by)
  asked.push(id)
  return { happened: true, id: String(id) }
}

/** A run is not over while a replay or a rebuild is; the writers have stopped by then. */
export async function finish(stage) {
  stage.journeys = await journeysBy(stage, stage.limitMs)
  if (stage.desk === undefined) return
  const { outbox, pool } = stage.desk
  stage.desk = undefined
  await outbox.close()
  await pool.end()
}

/** How each of them has ended, or where it is when the time is over. */
export async function journeysBy(stage, limitMs) {
  const found = []
  for (const id of stage.desk?.asked ?? []) {
    let journey = await stage.desk.outbox.journeys.show(id)
    while (['queued', 'running'].includes(journey.state) && performance.now() < limitMs) {
      await pause(200)
      journey = await stage.desk.outbox.journeys.show(id)
    }
    const { kind, state, phase, error, result } = journey
    found.push({ kind, state, phase, error: error ?? undefined, result })
  }
  return found
}
