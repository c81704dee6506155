// docs/reference/tables.md names every table and view of the schema, and nothing else.

import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'

const db = useDatabase()

it('docs/reference/tables.md lists exactly what is installed', async () => {
  const page = readFileSync(new URL('../../../../docs/reference/tables.md', import.meta.url), 'utf8')
  const listed = [...page.matchAll(/^\| `([a-z_]+)` \|/gm)].map((match) => match[1])
  const rows = await db.query<{ relname: string }>(
    `select relname from pg_class where relnamespace = 'outbox'::regnamespace and relkind in ('r', 'p', 'v') and not relispartition`,
  )
  expect(listed.sort()).toEqual(rows.map(({ relname }) => relname).sort())
})
