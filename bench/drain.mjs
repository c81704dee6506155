/**
 * How fast one worker process drains what is committed but not yet numbered, against a bare keyset
 * scan of the same rows with the same driver: interleaved rounds, medians and spread.
 *
 *   node bench/drain.mjs [--events 200000] [--rounds 5] [--json]
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { migrate } from 'hermod'
import { startPostgres } from 'hermod/embedded'
import pg from 'pg'

const { values: given } = parseArgs({
  options: {
    events: { type: 'string', default: '200000' },
    rounds: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
  },
})
const events = Number(given.events)
const rounds = Number(given.rounds)
const pageRows = 5_000
const scanner = fileURLToPath(new URL('drain-scan.mjs', import.meta.url))
const drainer = fileURLToPath(new URL('drain-worker.mjs', import.meta.url))

/** Runs a measuring process and returns what it reports. */
function measure(module, url, ...args) {
  return new Promise((resolve, reject) => {
    const child = fork(module, [url, String(events), ...args.map(String)])
    child.once('message', resolve)
    child.once('exit', (code) => code && reject(new Error(`${module} ended with ${code}`)))
  })
}

async function fill(pool) {
  const perCall = 1_000
  const filler = 'x'.repeat(360)
  for (let at = 0; at < events; at += perCall) {
    await pool.query(
      `select count(*) from outbox.emit_many(
         array_fill('document.updated'::text, array[$2::int]), array_fill('document'::text, array[$2::int]),
         array(select ((i * 7919) % 50000)::text from generate_series($1::int + 1, $1::int + $2::int) i),
         array(select json_build_object('id', i, 'title', 'Document ' || i, 'body', $3::text)::text
                 from generate_series($1::int + 1, $1::int + $2::int) i))`,
      [at, perCall, filler],
    )
  }
}

/** Cursors equal to the head, every event in the log once. */
async function check(pool) {
  const { rows } = await pool.query(`
    select (select count(*) from outbox.log) as logged,
           (select min(bytes) from outbox.event) as bytes,
           (select sum(delivered) from outbox.cursor) as delivered,
           (select count(*) from outbox.cursor c join outbox.log l on l.lane = c.lane and l.pos > c.pos) as open`)
  const { logged, delivered, open, bytes } = rows[0]
  if (Number(logged) !== events || Number(delivered) !== events || open !== '0' || bytes < 400) {
    throw new Error(`not drained: ${JSON.stringify(rows[0])}`)
  }
}

async function round(postgres, name) {
  const admin = new pg.Pool({ connectionString: postgres.url('postgres') })
  await admin.query(`create database ${name}`)
  const pool = new pg.Pool({ connectionString: postgres.url(name) })
  await migrate(pool)
  await fill(pool)
  await pool.query('vacuum analyze outbox.event')
  await pool.query('checkpoint')
  const scan = await measure(scanner, postgres.url(name), pageRows)
  const drain = await measure(drainer, postgres.url(name), pageRows)
  await check(pool)
  await pool.end()
  await admin.query(`drop database ${name} with (force)`)
  await admin.end()
  return { scan: events / scan.seconds, drain: events / drain.seconds, rssMb: drain.rssMb }
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)]
const summary = (list) => ({ median: median(list), min: Math.min(...list), max: Math.max(...list) })

const postgres = await startPostgres({ durable: true, settings: { shared_buffers: '512MB', max_wal_size: '4GB' } })
const results = []
try {
  for (let n = 0; n < rounds; n++) {
    const result = await round(postgres, `drain_${n}`)
    results.push({ ...result, ratio: result.drain / result.scan })
    const { scan, drain, ratio } = results.at(-1)
    console.error(`round ${n + 1}: scan ${Math.round(scan)}/s  drain ${Math.round(drain)}/s  ${(ratio * 100).toFixed(1)} %`)
  }
} finally {
  await postgres.destroy()
}
const figures = {
  events,
  rounds,
  scanPerSecond: summary(results.map(({ scan }) => scan)),
  drainPerSecond: summary(results.map(({ drain }) => drain)),
  vsScan: summary(results.map(({ ratio }) => ratio)),
  rssMb: summary(results.map(({ rssMb }) => rssMb)),
}
if (given.json) console.log(JSON.stringify(figures))
else console.table({ scan: figures.scanPerSecond, drain: figures.drainPerSecond, ratio: figures.vsScan })
