// The conformance suite for search engines, against PostgreSQL.

import { expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { postgresSearch } from '../../src/sinks/search/postgres.ts'
import { exerciseSearchEngine } from '../../src/testing/index.ts'
import { tellLeftOut } from '../support/left-out.ts'

const db = useDatabase({ empty: true })

const exercise = exerciseSearchEngine(() => postgresSearch({ connectionString: db.url, connectionsMax: 8 }), {
  test: it,
})

it('leaves nothing out', () => {
  expect(exercise.cases.length).toBeGreaterThan(50)
  expect(exercise.leftOut).toEqual([])
})
tellLeftOut(exercise)
