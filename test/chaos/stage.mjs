// Everything a scenario needs around the engine: a folder, a durable PostgreSQL of its own, the
// network, the sinks, the workers and the writers, and the end of them all.

import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { AUDIT } from './audit-sql.mjs'
import { declareCatalogue } from './catalogue.mjs'
import { openCount } from './check-sql.mjs'
import { copyEngine, importEngine } from './engine.mjs'
import { openHistory } from './history.mjs'
import { callMs, concurrency } from './options.mjs'
import { killAll, startProcess } from './processes.mjs'
import { forHistory, loopsOf } from './subscriptions.mjs'
import { aggregates } from './workload.mjs'

const politeMs = 6_000
const connectMs = 15_000
const aliveMs = 15_000

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

/** Whatever happens, its folder goes with the process, unless it is kept. */
export async function openStage(options, setup) {
  const folder = mkdtempSync(join(tmpdir(), 'hermod-chaos-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  process.once('exit', remove)
  const keepFolder = () => process.off('exit', remove)
  const removeFolder = () => {
    keepFolder()
    remove()
  }
  try {
    return { ...(await openIn(folder, options, setup)), removeFolder, keepFolder }
  } catch (error) {
    removeFolder()
    throw error
  }
}

async function openIn(folder, options, { subscriptions, settings = {}, audit = true }) {
  // PgBouncer reads its settings there as another account.
  chmodSync(folder, 0o755)
  const historyFolder = join(folder, 'history')
  mkdirSync(historyFolder)
  const engine = copyEngine(folder, options)
  const history = openHistory(historyFolder, 'conductor')
  history.write({ k: 'run', seed: options.seed, leaseMs: options.leaseMs })
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
    url: postgres.url('chaos'),
    limitMs: performance.now() + (options.seconds + 45) * 1_000,
    quietMs: 0,
    workers: [],
    writers: [],
    sinkHears: new Set(),
  }
  await install(stage).catch(async (error) => {
    await postgres.destroy()
    throw error
  })
  return stage
}

async function install({ postgres, engine, audit, subscriptions }) {
  await withClient(postgres.url(), (client) => client.query('create database chaos'))
  const hermod = await importEngine(engine)
  const pool = new pg.Pool({ connectionString: postgres.url('chaos'), max: 2 })
  try {
    await hermod.migrate(pool)
    await pool.query(audit ? CHAOS + AUDIT : CHAOS)
    await pool.query('insert into chaos.row (id) select unnest($1::text[])', [aggregates()])
    for (const sub of subscriptions.filter(({ table }) => table)) {
      const outbox = hermod.createOutbox({ pool })
      await (await declareCatalogue(hermod, outbox, { engine, pool, sub, callMs })).ensure()
      await outbox.close()
    }
  } finally {
    await pool.end()
  }
}

export async function withClient(url, work) {
  const client = await connected(url)
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** A crash may be under way: waits for its end. */
async function connected(url) {
  const limitMs = performance.now() + connectMs
  for (;;) {
    const client = new pg.Client({ connectionString: url, application_name: 'conductor' })
    client.on('error', () => {})
    try {
      await client.connect()
      return client
    } catch (error) {
      client.end().catch(() => {})
      if (performance.now() > limitMs) throw error
      await pause(100)
    }
  }
}

export async function startSinks(stage) {
  const { seed, faults } = stage.options
  const has = (name) => faults.includes(name)
  const config = {
    seed,
    callMs,
    folder: stage.historyFolder,
    subscriptions: stage.subscriptions,
    trouble: has('sink-trouble') ? 0.03 : 0,
    poison: has('poison') ? 0.001 : 0,
    lateTasks: has('late-tasks'),
  }
  stage.sinks = await startProcess('sinks.mjs', config, (said) => {
    for (const hear of stage.sinkHears) hear(said)
  })
  stage.sinkPort = stage.sinks.ready.port
  mustLive(stage, stage.sinks, 'the sinks')
}

/** A link of its own for each worker and side, one for all writers. */
export async function startNetwork(stage, databasePort = stage.postgres.port) {
  stage.proxy = await startProcess('proxy.mjs', {})
  const names = Array.from({ length: stage.options.workers }, (_, index) => workerName(index))
  const wanted = names.flatMap((name) => [
    { name: `${name}/db`, to: databasePort },
    { name: `${name}/sink`, to: stage.sinkPort },
  ])
  const { ports } = await stage.proxy.ask('open', { wanted: [...wanted, { name: 'writers/db', to: databasePort }] })
  stage.ports = ports
  mustLive(stage, stage.proxy, 'the proxy')
}

/** Without it the harness itself is broken, and says nothing about the engine. */
function mustLive(stage, { exited }, name) {
  exited.then(({ code, signal }) => {
    if (!stage.closed && !stage.stopping) stage.failed ??= new Error(`${name} ended (${signal ?? code})`)
  })
}

export const workerName = (index) => `worker-${index + 1}`

function urlOf(stage, name) {
  const port = stage.ports?.[`${name}/db`]
  return port === undefined ? stage.url : `postgres://postgres@127.0.0.1:${port}/chaos`
}

/** Worker `index`, for the first time or again. */
export async function startWorker(stage, index) {
  const { options, subscriptions } = stage
  const incarnation = (stage.workers[index]?.incarnation ?? 0) + 1
  const name = workerName(index)
  const wrong = options.faults.includes('clock') && index === options.seed % options.workers
  const process = await startProcess('worker.mjs', {
    name,
    incarnation,
    subscriptions,
    concurrency,
    callMs,
    url: urlOf(stage, name),
    sinkPort: stage.ports?.[`${name}/sink`] ?? stage.sinkPort,
    leaseMs: options.leaseMs,
    folder: stage.historyFolder,
    engine: stage.engine,
    poolMax: loopsOf(subscriptions, concurrency) + 4,
    ...(wrong && { wrongClock: options.seed }),
  })
  const fullName = `${name}.${incarnation}`
  stage.workers[index] = { name, fullName, incarnation, ...process }
  stage.history.write({ k: 'up', who: fullName })
  process.exited.then(
    ({ code }) =>
      stage.closed || stage.history.write({ k: 'down', who: fullName, polite: code === 0 || stage.idle === true }),
  )
}

export async function startWorkers(stage) {
  const { workers } = stage.options
  await Promise.all(Array.from({ length: workers }, (_, index) => startWorker(stage, index)))
}

/** Writer `index`, for the first time or again; `workload` as in workload.mjs. */
export async function startWriter(stage, index, workload = stage.workload) {
  const { seed, rate, writers } = stage.options
  const incarnation = (stage.writers[index]?.incarnation ?? 0) + 1
  const process = await startProcess('writer.mjs', {
    name: `w${index + 1}.${incarnation}`,
    index: index + incarnation * 100,
    url: urlOf(stage, 'writers'),
    seed,
    rate: rate / writers,
    connections: 2,
    ...workload,
    holdOpen: workload.holdOpen && index === 0 && incarnation === 1,
    folder: stage.historyFolder,
    engine: stage.engine,
  })
  stage.writers[index] = { incarnation, ...process }
}

export async function startWriters(stage, workload = {}) {
  stage.workload = workload
  // Where starting took long, the end has its time all the same.
  stage.limitMs = Math.max(stage.limitMs, performance.now() + (stage.options.seconds + 35) * 1_000)
  await Promise.all(Array.from({ length: stage.options.writers }, (_, index) => startWriter(stage, index)))
}

export async function stopWriters(stage) {
  const stopped = Promise.all(stage.writers.map((writer) => writer.ask('stop')))
  await Promise.race([stopped, pause(politeMs)])
  await Promise.all(stage.writers.map((writer) => writer.kill()))
  await commitPrepared(stage)
}

/** What a crash or a killed writer left prepared: its locks would stop the others. */
export async function commitPrepared(stage, { before = new Date(), of = '' } = {}) {
  await withClient(stage.url, async (client) => {
    const text = 'select gid from pg_prepared_xacts where prepared < $1 and starts_with(gid, $2)'
    const { rows } = await client.query(text, [before, of])
    // Its writer may have been quicker.
    for (const { gid } of rows) await client.query(`commit prepared '${gid}'`).catch(() => {})
  })
}

/**
 * Until everything is delivered and late writes had their time, or the time of the run is over: it
 * ends within seconds + 60. `first`: what else must have ended.
 */
export async function drain(stage, first = async () => {}) {
  const startedMs = performance.now()
  await first()
  const limitMs = Math.max(stage.limitMs, startedMs + 3_000)
  const open = await withClient(stage.url, async (client) => {
    for (;;) {
      const now = performance.now()
      const count = await openCount(client)
      if ((count === 0 && now > stage.quietMs) || now > limitMs) return count
      await pause(100)
    }
  })
  const tookMs = Math.round(performance.now() - startedMs)
  say(`drained in ${tookMs} ms, ${open} open`)
  return { tookMs, open }
}

/** Those that do not even answer: their process is busy with nothing, for ever. */
export async function stuckWorkers(stage) {
  const asked = stage.workers.map(async ({ fullName, pid, ask }) => {
    const before = cpuSeconds(pid)
    const said = await Promise.race([ask('alive'), pause(aliveMs, 'stuck', { ref: false })])
    if (said !== 'stuck') return undefined
    const used = (cpuSeconds(pid) - before).toFixed(1)
    say(`✗ ${fullName} did not answer within ${aliveMs} ms, and used ${used} s of CPU meanwhile`)
    return fullName
  })
  return (await Promise.all(asked)).filter(Boolean)
}

/** Of a process so far, on Linux; elsewhere nobody knows. */
function cpuSeconds(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
    return (Number(fields[11]) + Number(fields[12])) / 100
  } catch {
    return Number.NaN
  }
}

/** They have nothing in hand any more, however they end. */
export async function stopWorkers(stage) {
  stage.idle = true
  const stopped = Promise.all(stage.workers.map((worker) => worker.ask('stop')))
  await Promise.race([stopped, pause(politeMs)])
  // After a red run they may have work for hours.
  await Promise.all(stage.workers.map((worker) => worker.kill()))
}

export async function closeStage(stage, keep) {
  stage.closed = true
  stage.samples?.stop()
  await killAll()
  await stage.desk?.pool.end().catch(() => {})
  stage.history.close()
  if (keep) {
    stage.keepFolder()
    stage.postgres.keep()
    await stage.postgres.stop()
    say(`kept: ${stage.folder} and ${stage.postgres.dataDir}`)
    return
  }
  await stage.postgres.destroy()
  stage.removeFolder()
}
