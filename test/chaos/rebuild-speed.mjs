// How long a rebuild takes while rows change: `node test/chaos/rebuild-speed.mjs [--rows 100000] [--rate 50]
// [--engine postgres|opensearch] [--seconds 60]` after a build. OpenSearch is found by HERMOD_TEST_OPENSEARCH.
// The last line of stdout is one JSON object; exit 0: in time, and verify found nothing.

import { parseArgs } from 'node:util'
import pg from 'pg'
import { startPostgres } from '../../packages/hermod/dist/embedded/index.js'
import * as hermod from '../../packages/hermod/dist/index.js'
import { declare, Edits, FILL, TABLE } from './rebuild/profiles.mjs'

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '100000' },
    rate: { type: 'string', default: '50' },
    engine: { type: 'string', default: 'postgres' },
    seconds: { type: 'string' },
  },
})
const rows = Number(values.rows)
const rate = Number(values.rate)
const limitS = Number(values.seconds ?? (values.engine === 'postgres' ? 60 : 90))
const by = { actor: 'rebuild-speed' }
const say = (text) => console.error(`${(performance.now() / 1_000).toFixed(1).padStart(6)} s  ${text}`)

const postgres = await startPostgres({ durable: true })
let code = 1
try {
  const pool = new pg.Pool({ connectionString: postgres.url(), max: 20 })
  pool.on('error', () => {})
  await hermod.migrate(pool)
  await pool.query(TABLE)
  await pool.query(FILL, [rows])
  await pool.query('vacuum analyze talent.profile')
  say(`${rows} rows`)
  const engine = await openEngine(pool)
  const { outbox, index } = declare(hermod, { pool, engine })
  await outbox.watch('talent.profile', { type: 'profile', payload: 'reference' })
  await index.ensure()
  await outbox.start({ concurrency: 2 })
  const edits = new Edits(pool, { rows, perSecond: rate })
  edits.start()
  const result = await measured(outbox, edits)
  await edits.stop()
  const ok = result.seconds < limitS && result.drift === 0
  console.log(JSON.stringify({ ok, engine: values.engine, rows, rate, limitSeconds: limitS, ...result }))
  code = ok ? 0 : 1
  await outbox.close()
  await pool.end()
} finally {
  await postgres.destroy()
}
process.exit(code)

async function openEngine(pool) {
  if (values.engine === 'postgres') {
    const { postgresSearch } = await import('../../packages/hermod/dist/sinks/search/postgres.js')
    return postgresSearch({ pool })
  }
  const url = process.env.HERMOD_TEST_OPENSEARCH
  if (!url) throw new Error('HERMOD_TEST_OPENSEARCH is not set')
  const { opensearch } = await import('../../packages/hermod/dist/sinks/search/opensearch.js')
  return opensearch({ url, gzip: false })
}

async function measured(outbox, edits) {
  const startedMs = performance.now()
  const phases = {}
  let phase = 'queued'
  let sinceMs = startedMs
  const onProgress = (journey) => {
    if (journey.phase === phase || journey.phase === null) return
    phases[phase] = seconds(sinceMs)
    say(`${phase} took ${phases[phase]} s; now ${journey.phase} ${JSON.stringify(journey.progress.done)}`)
    phase = journey.phase
    sinceMs = performance.now()
  }
  const { id } = await outbox.rebuild('profiles', {}, by)
  const ended = await outbox.journeys.wait(id, { onProgress })
  const tookS = seconds(startedMs)
  if (ended.state !== 'succeeded') throw new Error(`${ended.state}: ${ended.error}`)
  say(`rebuilt in ${tookS} s, ${edits.made} edits so far`)
  const checkMs = performance.now()
  const { id: check } = await outbox.verify('profiles', {}, by)
  const { result, error } = await outbox.journeys.wait(check)
  if (error !== null) throw new Error(error)
  const drift = result.missing + result.orphaned + result.stale
  say(`verified in ${seconds(checkMs)} s: ${drift} differ`)
  const { documents, rejected } = ended.result
  return {
    seconds: tookS,
    phases,
    documents,
    rejected,
    edits: edits.made,
    drift,
    verifySeconds: seconds(checkMs),
    moving: result.moving,
  }
}

function seconds(sinceMs) {
  return Math.round((performance.now() - sinceMs) / 100) / 10
}
