// A worker that is killed while it rebuilds: a real process of the built engine. It tells its parent
// each phase the moment it is noted.

import pg from 'pg'
import { child } from '../processes.mjs'
import { declare } from './profiles.mjs'

const { config, tell } = child({ stop: async () => {} })
const door = (name) => import(new URL(name, config.engine).href)
const hermod = await door('index.js')
const { postgresSearch } = await door('sinks/search/postgres.js')

const pool = new pg.Pool({ connectionString: config.url, max: 12, application_name: 'rebuilder' })
pool.on('error', () => {})
const listener = {
  journey: ({ kind, phase, state }) => kind === 'rebuild' && tell({ phase, state }),
  error: ({ during, error }) => tell({ problem: `${during}: ${error?.message ?? error}` }),
}
const { outbox } = declare(hermod, {
  pool,
  engine: postgresSearch({ pool }),
  listener,
  keepMs: config.keepMs,
  callMs: 1_000,
})
const { leaseMs } = config
await outbox.start({ concurrency: 2, leaseMs, name: `rebuilder:${process.pid}`, pollMs: 100 })
tell({ ready: true })
