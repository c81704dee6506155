// Live latency while events are sent again: `node packages/hermod/test/journeys/measure-replay.mjs [events] [live/s]`
// after a build. A worker in a process of its own, a sink that takes a few milliseconds a call.

import { fork } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { startPostgres } from '../../dist/embedded/index.js'
import { createOutbox } from '../../dist/index.js'

const events = Number(process.argv[2] ?? 100_000)
const perSecond = Number(process.argv[3] ?? 100)
const quietMs = 20_000
const documents = Math.ceil(events / 2)

const now = () => performance.timeOrigin + performance.now()
const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]

if (process.env.MEASURE_WORKER !== undefined) await work(JSON.parse(process.env.MEASURE_WORKER))
else await measure()

async function work({ url, coalesce }) {
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const sink = {
    name: 'measured',
    capabilities: { keepsOrder: true, perItemResult: true, itemsMax: 5_000 },
    async deliver(batch) {
      await pause(2 + batch.length * 0.005)
      const t = now()
      for (const event of batch) {
        const { t: sent } = event.payload
        if (sent !== undefined) process.send([event.position.toString(), sent, t])
      }
    },
  }
  const outbox = createOutbox({ pool })
  const policy = coalesce ? { coalesce: 'latest' } : {}
  outbox.subscribe('search', {
    revision: 1,
    types: ['*'],
    from: 'beginning',
    sink,
    batch: { count: 1_000 },
    ...policy,
  })
  const worker = await outbox.start()
  process.once('message', async () => {
    await worker.stop()
    await pool.end()
    process.disconnect()
  })
}

async function measure() {
  const postgres = await startPostgres({})
  try {
    for (const coalesce of [true, false]) await round(postgres.url(), coalesce)
  } finally {
    await postgres.stop()
  }
}

async function round(admin, coalesce) {
  const name = coalesce ? 'coalesced' : 'ordered'
  const first = new pg.Pool({ connectionString: admin, max: 1 })
  await first.query(`create database ${name}`)
  await first.end()
  const url = Object.assign(new URL(admin), { pathname: `/${name}` }).href
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const outbox = createOutbox({ pool })
  await outbox.migrate()
  await fill(pool)
  const seen = new Map()
  const env = { ...process.env, MEASURE_WORKER: JSON.stringify({ url, coalesce }) }
  const child = fork(new URL(import.meta.url), { env })
  child.on('message', ([position, sent, t]) => {
    if (!seen.has(position)) seen.set(position, { sent, ms: t - sent })
  })
  await drained(pool)
  const live = writing(outbox)
  await pause(3_000)
  const quietFrom = now()
  await pause(quietMs)
  const quiet = latencies(seen, quietFrom, now())
  const startedMs = now()
  const { id, plan } = await outbox.journeys.replay('search', {
    from: 1n,
    actor: 'measure',
    reason: 'measured',
  })
  const queuedMs = now() - startedMs
  const journey = await outbox.journeys.wait(id)
  const endedMs = now()
  await live.stop()
  await pause(1_000)
  const busy = latencies(seen, startedMs, endedMs)
  child.send('stop')
  await new Promise((resolve) => child.once('exit', resolve))
  await pool.end()
  const seconds = (endedMs - startedMs) / 1000
  console.log(
    `${name}: ${plan.matching} events matched, ${journey.result.sent} sent again in ${seconds.toFixed(1)} s ` +
      `(${Math.round(journey.result.sent / seconds)}/s; counting took ${Math.round(queuedMs)} ms)`,
  )
  for (const [what, sorted] of [
    ['normal', quiet],
    ['during', busy],
  ])
    console.log(
      `  live ${what}: ${sorted.length} events, p50 ${at(sorted, 0.5).toFixed(1)} p99 ${at(sorted, 0.99).toFixed(1)} max ${sorted.at(-1).toFixed(1)} ms`,
    )
  console.log(`  p99 during / normal: ${(at(busy, 0.99) / at(quiet, 0.99)).toFixed(2)}`)
}

async function fill(pool) {
  await pool.query(
    `insert into outbox.event (bytes, type, aggregate_type, aggregate_id, payload)
     select 400, 'document.updated', 'document', 'd' || n % $2, json_build_object('n', n, 'text', repeat('x', 350))
       from generate_series(1, $1::int) n`,
    [events, documents],
  )
  while ((await pool.query('select more from outbox.sequence()')).rows[0]?.more) {}
}

async function drained(pool) {
  for (;;) {
    const { rows } = await pool
      .query(`select past from outbox.lag_of('search', 10) limit 1`)
      .catch(() => ({ rows: [{ past: 1 }] }))
    if (Number(rows[0]?.past ?? 1) === 0) return
    await pause(200)
  }
}

/** One commit each, evenly. */
function writing(outbox) {
  let going = true
  let n = 0
  const running = (async () => {
    const startedMs = now()
    while (going) {
      const aggregate = ['document', `live-${n++ % 500}`]
      await outbox.transaction((tx) => {
        const payload = { t: now() }
        return outbox.emit(tx, { type: 'document.updated', aggregate, payload })
      })
      await pause(Math.max(0, startedMs + (n * 1000) / perSecond - now()))
    }
  })()
  return {
    stop: () => {
      going = false
      return running
    },
  }
}

function latencies(seen, from, to) {
  const all = [...seen.values()].filter(({ sent }) => sent >= from && sent < to)
  return all.map(({ ms }) => ms).sort((a, b) => a - b)
}
