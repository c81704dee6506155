// The page of engines and cases lists exactly the cases of the suite.

import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { searchCases } from '../../src/testing/exercise-search-engine.ts'

const page = new URL('../../../../docs/reference/search-conformance.md', import.meta.url)

it('docs/reference/search-conformance.md is of this suite, and every engine runs 25 cases or more', () => {
  const rows = readFileSync(page, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.slice(2, -2).split(' | '))
  const named = rows.slice(2, -1).map(([name]) => name)
  expect(named).toEqual(searchCases.map(({ name }) => name))
  const green = (rows.at(-1) ?? []).slice(1).map((cell) => Number(cell.replaceAll('*', '')))
  expect(green.length).toBe(9)
  expect(Math.min(...green)).toBeGreaterThanOrEqual(25)
})
