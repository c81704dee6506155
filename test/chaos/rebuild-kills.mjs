// kill -9 in every phase of rebuilds under load: `node test/chaos/rebuild-kills.mjs [--rows 20000] [--rate 50]
// [--kills 104] [--seed N]` after a build. The last line of stdout is one JSON object; exit 0: every rebuild was
// completed, verify found nothing, and no search saw fewer rows than there were.

import { parseArgs } from 'node:util'
import pg from 'pg'
import { killAll } from './processes.mjs'
import { seeded } from './random.mjs'
import { Kills, phases, prepare } from './rebuild/kills.mjs'

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '20000' },
    rate: { type: 'string', default: '50' },
    kills: { type: 'string', default: '104' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const engineUrl = new URL('../../packages/hermod/dist/', import.meta.url).href
const door = (name) => import(new URL(name, engineUrl).href)
const [hermod, { postgresSearch }, { startPostgres }] = await Promise.all([
  door('index.js'),
  door('sinks/search/postgres.js'),
  door('embedded/index.js'),
])
const say = (text) => console.error(`${(performance.now() / 1_000).toFixed(1).padStart(6)} s  ${text}`)

const postgres = await startPostgres({ durable: true })
let code = 2
try {
  const url = postgres.url()
  const pool = new pg.Pool({ connectionString: url, max: 16, application_name: 'conductor' })
  pool.on('error', () => {})
  await hermod.migrate(pool)
  const rows = Number(values.rows)
  const parts = { hermod, postgresSearch, engineUrl }
  await prepare(parts, { pool, rows })
  say(`${rows} rows, indexed; seed ${values.seed}`)
  const kills = new Kills(parts, {
    pool,
    url,
    rows,
    perSecond: Number(values.rate),
    leaseMs: 1_500,
    say,
    wanted: Math.ceil(Number(values.kills) / phases.length),
    random: seeded(Number(values.seed)),
  })
  const found = await kills.run()
  const ok = found.drift === 0 && found.fewestHits >= 1 && found.kills >= Number(values.kills)
  const seconds = Math.round(performance.now() / 1_000)
  console.log(JSON.stringify({ ok, seed: Number(values.seed), rows, seconds, ...found }))
  code = ok ? 0 : 1
  await pool.end()
} catch (error) {
  console.error(error)
} finally {
  await killAll()
  await postgres.destroy()
}
process.exit(code)
