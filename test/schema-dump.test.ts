// The schema after all migrations is in the repository, so that a change of it shows in a review.
// Refresh it with: npx vitest run test/schema-dump.test.ts -u

import { expect, inject, it } from 'vitest'
import { useDatabase } from './support/database.ts'
import { schemaDump } from './support/schema-dump.ts'

const db = useDatabase()

it('the schema is the one in test/schema.sql', async ({ skip }) => {
  // Other versions write expressions differently.
  skip(inject('testServer').major !== 18, 'needs PostgreSQL 18')
  await expect(await schemaDump(db)).toMatchFileSnapshot('./schema.sql')
})
