// `hermod rebuild`, `verify` and `backfill` as people run them: real processes of the built package,
// beside a worker.

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { type Profiles, prepare, profiles } from './profiles.ts'

const db = useDatabase()
const dist = fileURLToPath(new URL('../../dist/', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'hermod-rebuild-cli-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let stage: Profiles

const CONFIG = `import pg from ${JSON.stringify(import.meta.resolve('pg'))}
import { createOutbox, tableSource } from ${JSON.stringify(`file://${dist}index.js`)}
import { postgresSearch } from ${JSON.stringify(`file://${dist}sinks/search/postgres.js`)}
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
const outbox = createOutbox({ pool })
const fields = { name: { kind: 'text', weight: 4 }, bio: { kind: 'text' }, city: { kind: 'keyword', facet: true }, age: { kind: 'number' } }
const index = outbox.index('profiles', {
  engine: postgresSearch({ pool }), definition: { fields }, subscription: 'search', keepMs: 600_000,
  source: tableSource({ table: 'profile', where: 'not hidden', columns: ['id', 'name', 'bio', 'city', 'age'] }),
})
outbox.subscribe('search', { revision: 1, types: ['profile.*'], coalesce: 'latest', from: 'beginning',
  sink: index.sink(), load: index.load, loads: 'references' })
export default outbox
`

beforeAll(async () => {
  await prepare(db, 300)
  writeFileSync(join(folder, 'hermod.config.mjs'), CONFIG)
  stage = profiles(db, { index: { keepMs: 600_000 } })
  db.closeAtEnd(() => stage.outbox.close())
  await stage.index.ensure()
  await stage.outbox.start({ pollMs: 50, upkeep: false })
})

function hermod(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const env = { ...process.env, DATABASE_URL: db.url, USER: 'ada' }
  return new Promise((resolve) => {
    execFile(process.execPath, [join(dist, 'cli', 'main.js'), ...args], { cwd: folder, env }, (error, out, err) =>
      resolve({ code: Number(error?.code ?? 0), out, err }),
    )
  })
}

it('rebuilds, rolls back, verifies and repairs, with exit codes for cron', {
  timeout: 60_000,
}, async () => {
  const [preview, unknown] = await Promise.all([
    hermod('rebuild', 'profiles', '--dry-run'),
    hermod('rebuild', 'profile'),
  ])
  expect(preview).toMatchObject({ code: 0, out: expect.stringContaining('rows\t300') })
  expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining('did you mean profiles?') })

  const rebuilt = await hermod('rebuild', 'profiles', '--wait')
  expect(rebuilt).toMatchObject({ code: 0, out: expect.stringContaining('documents\t300') })
  expect(rebuilt.err).toContain('hermod rebuild profiles --rollback goes back')
  const clean = await hermod('verify', 'profiles')
  expect(clean).toMatchObject({ code: 0, err: expect.stringContaining('No drift.') })

  const live = (await stage.engine.generations('profiles')).find(({ state }) => state === 'live')
  await db.query(`delete from search."profiles_g${live?.id}" where id = '17'`)
  const [drift, queued] = await Promise.all([
    hermod('verify', 'profiles', '--json'),
    hermod('rebuild', 'profiles', '--keep', 'soon'),
  ])
  expect(drift.code).toBe(3)
  expect(JSON.parse(drift.out)).toMatchObject({ missing: 1, examples: { missing: ['17'] } })
  expect(queued).toMatchObject({ code: 2, err: expect.stringContaining('--keep must be a time') })
  expect(await hermod('verify', 'profiles', '--repair')).toMatchObject({
    code: 0,
    out: expect.stringContaining('repaired\t1'),
  })

  const back = await hermod('rebuild', 'profiles', '--rollback', '--json')
  expect(back.code).toBe(0)
  expect(JSON.parse(back.out)).toMatchObject({ state: 'succeeded', result: { former: live?.id } })
  const begun = await hermod('backfill', 'profiles', '--no-wait')
  const id = BigInt(/journey\t(\d+)/.exec(begun.out)?.[1] ?? 0)
  await eventually(async () => (await stage.outbox.journeys.show(id))?.state === 'succeeded')
})
