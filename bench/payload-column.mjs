/**
 * json against jsonb for the payload column: writing, reading as text, and size on disk, for rows of
 * about 400 bytes and for documents of about 100 kB. Interleaved rounds, medians; prints a table.
 *
 *   node bench/payload-column.mjs [--rows 200000] [--rounds 5]
 */
import { parseArgs } from 'node:util'
import { startPostgres } from 'hermod/embedded'
import pg from 'pg'

const { values: given } = parseArgs({
  options: {
    rows: { type: 'string', default: '200000' },
    rounds: { type: 'string', default: '5' },
  },
})
const rounds = Number(given.rounds)
const types = ['json', 'jsonb']
const pageRows = 5_000
const asText = { getTypeParser: () => (value) => value }

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

function smallPayload(n) {
  return JSON.stringify({
    id: n,
    title: `Document ${n}`,
    tags: ['a', 'b', n % 7],
    body: 'x'.repeat(320),
  })
}

function largePayload(n) {
  const lines = Array.from({ length: 560 }, (_, line) => ({
    number: line,
    sku: `SKU-${(n * 7919 + line * 104729) % 1e6}`,
    quantity: (n * line) % 500,
    unitPrice: ((n + line) % 9999) / 100,
    currency: 'EUR',
    description: `Article ${(line * 31 + n) % 1e5} in size ${line % 60}`,
    updatedAt: new Date(1.7e12 + ((n * line) % 1e9)).toISOString(),
  }))
  return JSON.stringify({ id: n, lines })
}

async function timed(work) {
  const startedMs = performance.now()
  await work()
  return performance.now() - startedMs
}

async function fill(client, table, type, rows, payload) {
  await client.query(
    `drop table if exists ${table}; create table ${table} (id bigint primary key, payload ${type} not null)`,
  )
  const perCall = Math.min(1_000, rows)
  for (let at = 0; at < rows; at += perCall) {
    const batch = Array.from({ length: perCall }, (_, n) => payload(at + n))
    await client.query(
      `insert into ${table} select $1::bigint + n, p::${type} from unnest($2::text[]) with ordinality u(p, n)`,
      [at, batch],
    )
  }
}

/** As the engine reads: pages in order, the payload as text, nothing parsed. */
async function scan(client, table, rows, page) {
  for (let last = 0; last < rows; ) {
    const text = `select id, payload::text from ${table} where id > $1 order by id limit ${page}`
    const result = await client.query({ text, values: [last], rowMode: 'array', types: asText })
    if (result.rows.length === 0) break
    last = Number(result.rows.at(-1)[0])
  }
}

async function measure(client, label, rows, page, payload) {
  const seen = Object.fromEntries(types.map((type) => [type, { fill: [], scan: [], bytes: 0 }]))
  for (let round = 0; round < rounds; round++) {
    for (const type of round % 2 === 0 ? types : types.slice().reverse()) {
      const table = `payload_${type}`
      const { fill: fills, scan: scans } = seen[type]
      fills.push(await timed(() => fill(client, table, type, rows, payload)))
      await client.query(`vacuum (analyze) ${table}`)
      scans.push(await timed(() => scan(client, table, rows, page)))
      const size = await client.query(`select pg_total_relation_size($1)::text as bytes`, [table])
      seen[type].bytes = Number(size.rows[0].bytes)
    }
  }
  const bytes = Buffer.byteLength(payload(1))
  return types.map((type) => ({
    payload: label,
    'JSON bytes': bytes,
    column: type,
    'rows/s written': Math.round(rows / (median(seen[type].fill) / 1000)),
    'rows/s read as text': Math.round(rows / (median(seen[type].scan) / 1000)),
    'bytes/row on disk': Math.round(seen[type].bytes / rows),
  }))
}

const cluster = await startPostgres({ settings: { shared_buffers: '512MB', max_wal_size: '4GB' } })
const client = new pg.Client({ connectionString: cluster.url() })
await client.connect()
try {
  const rows = Number(given.rows)
  console.table([
    ...(await measure(client, 'row', rows, pageRows, smallPayload)),
    ...(await measure(client, 'document', Math.max(100, Math.round(rows / 200)), 50, largePayload)),
  ])
  console.log(`PostgreSQL ${cluster.version}, Node ${process.version}, median of ${rounds} rounds`)
} finally {
  await client.end()
  await cluster.destroy()
}
