// verify in bounded memory: `node --max-old-space-size=96 test/chaos/verify-memory.mjs [rows]` after a build. A table of so
// many rows, an index that lacks all of them: the worst there is. Prints time and the largest heap.

import pg from 'pg'
import { startPostgres } from '../../packages/hermod/dist/embedded/index.js'
import * as hermod from '../../packages/hermod/dist/index.js'
import { postgresSearch } from '../../packages/hermod/dist/sinks/search/postgres.js'

const rows = Number(process.argv[2] ?? 1_000_000)
const postgres = await startPostgres({})
let code = 1
try {
  const pool = new pg.Pool({ connectionString: postgres.url(), max: 12 })
  pool.on('error', () => {})
  await hermod.migrate(pool)
  await pool.query('create table item (id bigint primary key, name text not null)')
  await pool.query(`insert into item select n, 'Item ' || n from generate_series(1, $1::int) n`, [rows])
  const outbox = hermod.createOutbox({ pool })
  const index = outbox.index('items', {
    engine: postgresSearch({ pool }),
    definition: { fields: { name: { kind: 'text' } } },
    source: hermod.tableSource({ table: 'item' }),
    subscription: 'search',
  })
  outbox.subscribe('search', {
    revision: 1,
    types: ['item.*'],
    sink: index.sink(),
    load: index.load,
  })
  await index.ensure()
  await outbox.start()
  let heapBytes = 0
  const watching = setInterval(() => {
    heapBytes = Math.max(heapBytes, process.memoryUsage().heapUsed)
  }, 20)
  const startedMs = performance.now()
  const { id } = await outbox.verify('items', {}, { actor: 'verify-memory' })
  const { state, error, result } = await outbox.journeys.wait(id)
  clearInterval(watching)
  const seconds = Math.round((performance.now() - startedMs) / 100) / 10
  const ok = state === 'succeeded' && result.missing === rows
  const heapMb = Math.round(heapBytes / 1024 / 1024)
  console.log(JSON.stringify({ ok, rows, seconds, heapMb, missing: result?.missing, error }))
  code = ok ? 0 : 1
  await outbox.close()
  await pool.end()
} finally {
  await postgres.destroy()
}
process.exit(code)
