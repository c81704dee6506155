// Everything a scenario needs around the engine: a folder, a durable PostgreSQL of its own, the
// sink, the workers and the writer, and the end of them all.

import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { AUDIT, openCount } from './check-sql.mjs'
import { copyEngine, importEngine } from './engine.mjs'
import { openHistory } from './history.mjs'
import { callMs, concurrency } from './options.mjs'
import { killAll, startProcess } from './processes.mjs'
import { forHistory, loopsOf } from './subscriptions.mjs'
import { aggregates } from './workload.mjs'

const politeMs = 5_000

const CHAOS = `
  create schema chaos;
  create table chaos.tx (tx text primary key, events int not null);
  create table chaos.row (id text primary key, version bigint not null default 0) with (fillfactor = 50);
  -- Locks and changes the rows one after the other, in the order given.
  create function chaos.change(ids text[], times int[]) returns table (id text, version int)
  language plpgsql as $$ begin
    for i in 1 .. cardinality(ids) loop
      return query update chaos.row r set version = r.version + times[i] where r.id = ids[i]
        returning r.id, r.version::int;
    end loop;
  end $$;`

/** Progress, with the seconds since the start. */
export function say(text) {
  process.stderr.write(`${(performance.now() / 1_000).toFixed(1).padStart(6)} s  ${text}\n`)
}

export async function openStage(options, setup) {
  const folder = mkdtempSync(join(tmpdir(), 'hermod-stress-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  process.once('exit', remove)
  return {
    ...(await openIn(folder, options, setup)),
    keepFolder: () => process.off('exit', remove),
  }
}

async function openIn(folder, options, { subscriptions, settings = {}, audit = true }) {
  // PgBouncer reads its settings there as another account.
  chmodSync(folder, 0o755)
  const historyFolder = join(folder, 'history')
  mkdirSync(historyFolder)
  const engine = copyEngine(folder, options)
  const history = openHistory(historyFolder, 'conductor')
  for (const subscription of subscriptions) history.write(forHistory(subscription))
  const { startPostgres } = await importEngine(engine, 'embedded/index.js')
  const postgres = await startPostgres({ durable: true, settings })
  const stage = {
    options,
    folder,
    historyFolder,
    engine,
    history,
    postgres,
    subscriptions,
    audit,
    url: postgres.url('stress'),
    workers: [],
    sinkHears: new Set(),
  }
  await install(stage)
  return stage
}

async function install({ postgres, engine, audit }) {
  await withClient(postgres.url(), (client) => client.query('create database stress'))
  const { migrate } = await importEngine(engine)
  const pool = new pg.Pool({ connectionString: postgres.url('stress'), max: 2 })
  try {
    await migrate(pool)
    await pool.query(audit ? CHAOS + AUDIT : CHAOS)
    const text = 'insert into chaos.row (id) select unnest($1::text[])'
    await pool.query(text, [aggregates()])
  } finally {
    await pool.end()
  }
}

export async function withClient(url, work) {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

export async function startSink(stage) {
  const { seed, trouble, poison } = stage.options
  const config = { folder: stage.historyFolder, seed, trouble, poison }
  stage.sink = await startProcess('sink.mjs', config, (said) => {
    for (const hear of stage.sinkHears) hear(said)
  })
  stage.sinkPort = stage.sink.ready.port
}

/** Worker `index`, for the first time or again. */
export async function startWorker(stage, index) {
  const { options, subscriptions } = stage
  const incarnation = (stage.workers[index]?.incarnation ?? 0) + 1
  const name = `worker-${index + 1}`
  const process = await startProcess('worker.mjs', {
    name,
    incarnation,
    subscriptions,
    concurrency,
    callMs,
    url: stage.pooledUrl ?? stage.url,
    sinkPort: stage.sinkPort,
    leaseMs: options.leaseMs,
    folder: stage.historyFolder,
    engine: stage.engine,
    poolMax: loopsOf(subscriptions, concurrency) + 4,
  })
  stage.workers[index] = { name, incarnation, ...process }
}

export async function startWorkers(stage) {
  const { workers } = stage.options
  await Promise.all(Array.from({ length: workers }, (_, index) => startWorker(stage, index)))
}

/** `workload` as in workload.mjs. */
export async function startWriter(stage, workload = {}) {
  const { seed, rate } = stage.options
  stage.writer = await startProcess('writer.mjs', {
    url: stage.pooledUrl ?? stage.url,
    seed,
    rate,
    connections: 6,
    ...workload,
    folder: stage.historyFolder,
    engine: stage.engine,
  })
}

export async function stopWriter(stage) {
  const counts = await stage.writer.ask('stop')
  await commitPrepared(stage)
  return counts
}

/** What a crash left prepared: its writer is gone, and its locks would stop the others. */
export async function commitPrepared(stage, before = new Date()) {
  await withClient(stage.url, async (client) => {
    const text = 'select gid from pg_prepared_xacts where prepared < $1'
    const { rows } = await client.query(text, [before])
    for (const { gid } of rows) await client.query(`commit prepared '${gid}'`)
  })
}

/** Until everything is delivered, or the time of the run is over: it ends within seconds + 60. */
export async function drain(stage) {
  const startedMs = performance.now()
  const limitMs = Math.max((stage.options.seconds + 45) * 1_000, startedMs + 5_000)
  const open = await withClient(stage.url, async (client) => {
    for (;;) {
      const count = await openCount(client)
      if (count === 0 || performance.now() > limitMs) return count
      await pause(100)
    }
  })
  const tookMs = Math.round(performance.now() - startedMs)
  say(`drained in ${tookMs} ms, ${open} open`)
  return { tookMs, open }
}

export async function stopWorkers(stage) {
  const stopped = Promise.all(stage.workers.map((worker) => worker.ask('stop')))
  await Promise.race([stopped, pause(politeMs)])
  // After a red run they may have work for hours.
  await Promise.all(stage.workers.map((worker) => worker.kill()))
}

export async function closeStage(stage, keep) {
  await killAll()
  stage.history.close()
  if (keep) {
    stage.keepFolder()
    stage.postgres.keep()
    await stage.postgres.stop()
    say(`kept: ${stage.folder} and ${stage.postgres.dataDir}`)
    return
  }
  await stage.postgres.destroy()
}
