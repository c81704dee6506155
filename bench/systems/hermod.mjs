/** Hermod, through its public door: this checkout's, or the one a comparison names (`before.mjs`). */
import { aggregateType, type } from '../payload.mjs'
import { openPool } from '../pool.mjs'

const asEvent = ({ aggregateId, payload }) => ({
  type,
  aggregate: [aggregateType, aggregateId],
  payload,
})
/** No pooler in between. */
const prepare = true
const leafRows = 1_000_000
const leavesAhead = 2
const callMax = 10_000
const listener = { error: ({ during, error }) => console.error(`hermod, ${during}:`, error) }

/** `library`: what is exported by the package under test. */
export const systemOf = (name, { createOutbox, migrate }) => ({
  name,
  schema: 'outbox',
  settings: { concurrency: 2, batch: 2_000 },
  reasons: 'two claim loops for two cores; larger batches are no faster and need more memory; prepared statements',
  /** One loop takes all lanes at its first claim: a smoke run waits for no second one. */
  smoke: { concurrency: 1, batch: 500 },
  candidates: [
    { concurrency: 1, batch: 5_000 },
    { concurrency: 2, batch: 5_000 },
    { concurrency: 2, batch: 2_000 },
    { concurrency: 2, batch: 1_000 },
    { concurrency: 4, batch: 5_000 },
  ],

  /** With the leaves that its first upkeep would have added ahead. */
  async install(url) {
    const pool = openPool(url, 2)
    await migrate(pool)
    for (const parent of ['event', 'log', 'attempt'])
      for (let leaf = 1; leaf <= leavesAhead; leaf++) await addLeaf(pool, parent, leaf)
    await pool.end()
  },

  /** And later ones in time. */
  async room(pool, events) {
    for (let leaf = leavesAhead + 1; leaf * leafRows < events; leaf++)
      for (const parent of ['event', 'log']) await addLeaf(pool, parent, leaf)
  },

  async producer(url, connections = 1) {
    const pool = openPool(url, connections + 1)
    const outbox = createOutbox({ pool, listener, prepare })
    return {
      transaction: (work, items) =>
        outbox.transaction(async (tx, emit) => {
          await work(tx)
          for (let from = 0; from < items.length; from += callMax) emit(items.slice(from, from + callMax).map(asEvent))
        }),
      end: () => pool.end(),
    }
  },

  async consumer(url, { delivered, settings, subscriptions = 1, sinkMs = 0 }) {
    const pool = openPool(url, settings.concurrency + 8)
    const outbox = createOutbox({ pool, listener, prepare })
    const sink = nullSink(delivered, sinkMs)
    for (let n = 1; n <= subscriptions; n++) {
      const batch = { count: settings.batch }
      outbox.subscribe(`null-${n}`, { revision: 1, types: ['*'], from: 'beginning', batch, sink })
    }
    const worker = await outbox.start({ concurrency: settings.concurrency })
    return { stop: () => worker.stop(), end: () => pool.end() }
  },

  /** Every event in the log once, every cursor at the end, nothing that needs attention. */
  async check(pool, events, subscriptions = 1) {
    const { rows } = await pool.query(`
      with newest as (select distinct on (subscription, lane) subscription, lane, pos, delivered
                        from outbox.cursor order by subscription, lane, fence desc, pos desc)
      select (select count(*) from outbox.log)::int as logged,
             (select min(bytes) from outbox.event)::int as bytes,
             (select sum(delivered) from newest)::bigint::text as delivered,
             (select count(*) from newest c join outbox.log l on l.lane = c.lane and l.pos > c.pos)::int as open,
             (select count(*) from outbox.delivery)::int as exceptions`)
    const { logged, bytes, delivered, open, exceptions } = rows[0]
    const wanted = String(events * subscriptions)
    if (logged === events && delivered === wanted && open === 0 && exceptions === 0 && bytes >= 400) return
    throw new Error(`hermod did not deliver ${events} events: ${JSON.stringify(rows[0])}`)
  },
})

export default systemOf('hermod', await import('hermod'))

function addLeaf(pool, parent, leaf) {
  const from = leaf * leafRows + 1
  return pool.query('select outbox.add_partition($1, $2, $3)', [parent, from, from + leafRows])
}

/** Counts, and may take its time. */
function nullSink(delivered, sinkMs) {
  return {
    name: 'null',
    capabilities: { keepsOrder: true },
    async deliver(batch) {
      if (sinkMs > 0) await new Promise((resolve) => setTimeout(resolve, sinkMs))
      delivered(batch.length, (index) => batch[index].payload.id)
    },
  }
}
