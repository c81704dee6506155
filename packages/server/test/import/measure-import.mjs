// How fast and how large an import is: node packages/server/test/import/measure-import.mjs [rows] [mode]
// An embedded PostgreSQL, a generated NDJSON file through the real command, rows per second and the
// largest resident size. Not part of the tests; run it after a build, on a machine that does nothing else.

import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { startPostgres } from '../../../hermod/dist/embedded/index.js'
import { migrate } from '../../../hermod/dist/index.js'
import { migrateServer } from '../../dist/index.js'

const rows = Number(process.argv[2] ?? 100_000)
const flags = process.argv[3] === 'best-effort' ? ['--best-effort'] : []
const bin = fileURLToPath(new URL('../../../hermod/bin/hermod.js', import.meta.url))
const folder = await mkdtemp(join(tmpdir(), 'hermod-measure-'))
const postgres = await startPostgres({ settings: { fsync: 'on', synchronous_commit: 'on' } })
const pool = new pg.Pool({ connectionString: postgres.url() })
try {
  await migrate(pool)
  await migrateServer(pool)
  await pool.query(
    `with p as (insert into hermod.person (display_name) values ('Ada') returning id)
     insert into hermod.person_identity (person_id, type, provider, value, verified_at, is_primary)
       select id, 'email', 'google', 'ada@example.org', now(), true from p`,
  )
  const file = join(folder, 'documents.ndjson')
  await pipeline(lines(), createWriteStream(file))
  const { size } = await stat(file)
  const startedAt = performance.now()
  const says = await run(['import', file, '--as', 'ada@example.org', '--json', ...flags])
  const seconds = (performance.now() - startedAt) / 1_000
  const { rows: counts } = await pool.query(
    `select (select count(*) from hermod.document) as documents, (select count(*) from hermod.document_modification_log) as log, (select count(*) from outbox.event) as events`,
  )
  console.log({ rows, megabytes: Math.round(size / 1e6), seconds: Number(seconds.toFixed(1)) })
  console.log({
    rowsPerSecond: Math.round(rows / seconds),
    maxRssMegabytes: says.maxRss,
    cpuSecondsOfTheCommand: says.cpuSeconds,
    ...counts[0],
  })
} finally {
  await pool.end()
  await postgres.stop()
  await rm(folder, { recursive: true })
}

function* lines() {
  const text = 'Why the ranking of the second try is better than the first one, with measurements. '
  for (let n = 1; n <= rows; n++) {
    const document = {
      title: `Document ${n}`,
      docType: 'RFC',
      product: `Product ${n % 20}`,
      summary: `Number ${n}`,
      content: text.repeat(5),
      tags: ['imported', `tag-${n % 50}`],
      owners: ['ada@example.org'],
      customFields: { team: 'Search' },
    }
    yield `${JSON.stringify(document)}\n`
  }
}

function run(args) {
  const report =
    'process.on("exit",()=>{const r=process.resourceUsage();console.error("maxRSS",r.maxRSS,"cpu",r.userCPUTime+r.systemCPUTime)})'
  const child = spawn(process.execPath, ['--import', `data:text/javascript,${report}`, bin, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, DATABASE_URL: postgres.url() },
  })
  let said = ''
  child.stderr.on('data', (piece) => {
    said += piece
  })
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => {
      const [, kilobytes = '0', micros = '0'] = /maxRSS (\d+) cpu (\d+)/.exec(said) ?? []
      const cpuSeconds = Math.round(Number(micros) / 1e5) / 10
      if (code === 0) resolve({ maxRss: Math.round(Number(kilobytes) / 1_024), cpuSeconds })
      else reject(new Error(said))
    })
  })
}
