// kill -9 of the worker in some phases of a rebuild, while rows change and somebody searches: small.
// The long one, in every phase, is `node test/chaos/rebuild-kills.mjs`.

import { expect, it } from 'vitest'
import { Kills, prepare } from '../../../../test/chaos/rebuild/kills.mjs'
import { useDatabase } from '../../../../test/support/database.ts'
import * as hermod from '../../src/index.ts'
import { postgresSearch } from '../../src/sinks/search/postgres.ts'

const db = useDatabase()

it('a rebuild survives kills', { timeout: 90_000 }, async () => {
  const engineUrl = new URL('../../dist/', import.meta.url).href
  const parts = { hermod, postgresSearch, engineUrl }
  const { pool, url } = db
  await prepare(parts, { pool, rows: 600 })
  const kills = new Kills(parts, {
    pool,
    url,
    rows: 600,
    perSecond: 50,
    wanted: 1,
    leaseMs: 1_500,
    random: () => 0.05,
    expire: true,
    rebuildsMax: 1,
    only: ['load', 'verify', 'swap', 'keep'],
  })
  const found = await kills.run()
  expect(found).toMatchObject({ drift: 0, fewestHits: 1 })
  expect(found.kills).toBeGreaterThanOrEqual(3)
})
