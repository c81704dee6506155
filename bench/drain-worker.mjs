/** One worker process that drains everything into a sink that only counts. */
import { createOutbox } from 'hermod'
import pg from 'pg'

const [url, events, pageRows] = process.argv.slice(2)
const pool = new pg.Pool({ connectionString: url, max: 10 })
await pool.query('select 1')
let seen = 0
let done
const all = new Promise((resolve) => {
  done = resolve
})
const outbox = createOutbox({ pool, listener: { error: ({ during, error }) => console.error(during, error) } })
outbox.subscribe('null', {
  revision: 1,
  types: ['*'],
  from: 'beginning',
  batch: { count: Number(pageRows) },
  sink: {
    name: 'null',
    capabilities: { keepsOrder: true },
    async deliver(batch) {
      seen += batch.length
      if (seen >= Number(events)) done()
    },
  },
})
const started = performance.now()
const worker = await outbox.start({ concurrency: 2, upkeep: false, listen: false })
await all
await worker.stop() // the last cursors are settled
const seconds = (performance.now() - started) / 1000
if (seen !== Number(events)) throw new Error(`delivered ${seen} of ${events}`)
process.send({ seconds, rssMb: process.memoryUsage().rss / 1e6 })
await pool.end()
