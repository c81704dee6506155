// Journeys are listed newest first, however many digits their numbers have.

import { expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { createOutbox } from '../../src/index.ts'

const db = useDatabase()

it('lists 25 of them in pages, each once, the newest first', async () => {
  await db.query(
    `insert into outbox.journey (kind, subject, state, plan, requested_by, started_at, ended_at)
     select 'verify', 'documents', 'succeeded', '{}', 'ada', outbox.clock(), outbox.clock() from generate_series(1, 25)`,
  )
  const outbox = createOutbox({ pool: db.pool })
  const seen: bigint[] = []
  for (let before: bigint | undefined; ; before = seen.at(-1)) {
    const page = await outbox.journeys.list({ limit: 7, ...(before !== undefined && { before }) })
    if (page.length === 0) break
    seen.push(...page.map(({ id }) => id))
  }
  expect(seen.map(Number)).toEqual(Array.from({ length: 25 }, (_, at) => 25 - at))
})
